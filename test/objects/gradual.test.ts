import { afterAll, beforeAll, expect, it } from "vitest";
import { startHosting, uploadForm, type Hosting } from "../runtime/platform.ts";
import { ownerToken } from "../helpers/server.ts";

/** Gradual deployments of scripts with objects: each object has one version at a time. */
const codeOf = (version: string, more = ""): string => `import { DurableObject } from "cloudflare:workers";
export class Counter extends DurableObject {
  count() {
    const n = (this.ctx.storage.kv.get("n") ?? 0) + 1;
    this.ctx.storage.kv.put("n", n);
    return { version: "${version}", n };
  }
  fetch() { return Response.json(this.count()); }
}
${more}
export default { async fetch(request, env) {
  const [, name, how] = new URL(request.url).pathname.split("/");
  const stub = env.COUNTERS.getByName(name);
  return how === "fetch" ? stub.fetch(request) : Response.json(await stub.count());
} };`;
const bindings = [{ type: "durable_object_namespace", name: "COUNTERS", class_name: "Counter" }];
const names = Array.from({ length: 40 }, (_, i) => `o${i}`);

let hosting: Hosting;
beforeAll(async () => {
  hosting = await startHosting();
  const metadata = { migrations: { new_tag: "v1", new_sqlite_classes: ["Counter"] } };
  await hosting.deploy("counters", { code: codeOf("one"), bindings, metadata });
});
afterAll(async () => hosting.close(0));

const path = (): string => `/accounts/${hosting.account}/workers/scripts/counters`;
async function upload(code: string): Promise<string> {
  const response = await fetch(`${hosting.ready.api}${path()}/versions`, {
    method: "POST",
    headers: { authorization: `Bearer ${ownerToken}` },
    body: uploadForm({ code, bindings }),
  });
  const { result } = (await response.json()) as { result: { id: string } };
  return result.id;
}
async function share(shares: Record<string, number>): Promise<void> {
  const versions = Object.entries(shares).map(([version_id, percentage]) => ({ version_id, percentage }));
  const { status } = await hosting.call("POST", `${path()}/deployments`, {
    strategy: "percentage",
    versions,
  });
  expect(status).toBe(200);
}
interface VersionCount {
  version: string;
  n: number;
}
const ask = async (name: string, how: string): Promise<VersionCount> =>
  JSON.parse((await hosting.ask("counters", `/${name}/${how}`)).body) as VersionCount;
/** The versions of all objects, each of which answers several times with the same one, and counts on. */
let counted = 0;
async function versionsOf(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (let round = 0; round < 2; round++) {
    counted++;
    await Promise.all(
      names.map(async (name) => {
        const { version, n } = await ask(name, round % 2 === 0 ? "fetch" : "call");
        expect(found.get(name) ?? version).toBe(version);
        expect(n).toBe(counted);
        found.set(name, version);
      }),
    );
  }
  return found;
}
const withVersion = (all: Map<string, string>, version: string): string[] =>
  names.filter((name) => all.get(name) === version);

it("an object has one of two deployed versions, and changes it once while the share grows", async () => {
  const { body } = await hosting.call("GET", `${path()}/versions`);
  const one = (body.result as { items: { id: string }[] }).items[0]!.id;
  const two = await upload(codeOf("two"));
  expect(withVersion(await versionsOf(), "two")).toEqual([]);
  let before: string[] = [];
  for (const percentage of [33, 66]) {
    await share({ [one]: 100 - percentage, [two]: percentage });
    const now = withVersion(await versionsOf(), "two");
    // An object that has the new version keeps it.
    expect(now).toEqual(expect.arrayContaining(before));
    expect(now.length).toBeGreaterThan(before.length);
    expect(now.length).toBeLessThan(names.length);
    before = now;
  }
  await share({ [two]: 100 });
  expect(withVersion(await versionsOf(), "two")).toEqual(names);
  await share({ [one]: 100 });
  expect(withVersion(await versionsOf(), "one")).toEqual(names);
});

it("a version that does not export a class of the objects is refused", async () => {
  const response = await fetch(`${hosting.ready.api}${path()}/versions`, {
    method: "POST",
    headers: { authorization: `Bearer ${ownerToken}` },
    body: uploadForm({ code: "export default { fetch() {} };" }),
  });
  expect(response.status).toBe(400);
  expect(await response.text()).toContain("does not export class 'Counter'");
});
