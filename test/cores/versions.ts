import type { Cores } from "./cores.ts";

const visitsAtOnce = 8;
const answering = (text: string): string => `export default { fetch: () => new Response("${text}") }`;

/**
 * Deploys a version in each round, of a script and of a customer's script in turn, and visits it when the API has
 * answered. Resolves with the answers that were not of that version.
 */
export async function changeVersions({ calls }: Cores, rounds: number): Promise<string[]> {
  await calls.createNamespace("customers");
  await calls.deploy("dispatcher", {
    code: `export default { fetch: (request, env) => env.CUSTOMERS.get("bob").fetch(request) }`,
    bindings: [{ type: "dispatch_namespace", name: "CUSTOMERS", namespace: "customers" }],
  });
  const stale: string[] = [];
  for (let round = 0; round < rounds; round++) {
    const text = `round ${round}`;
    if (round % 2 === 0) await calls.deploy("versioned", answering(text));
    else await calls.deployCustomer("customers", "bob", answering(text));
    const asked = round % 2 === 0 ? "versioned" : "dispatcher";
    const visits = await Promise.all(Array.from({ length: visitsAtOnce }, () => calls.ask(asked)));
    for (const { body } of visits) if (body !== text) stale.push(`${text}: ${body}`);
  }
  return stale;
}
