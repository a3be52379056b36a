import { fc } from "../helpers/properties.ts";
import type { TestServer } from "../helpers/server.ts";
import { uploadForm } from "../runtime/platform.ts";
import type { Customer, Customers } from "./customers.ts";

/** Attempts of an account to take over hosts of others. Numbers select among existing resources. */
type Attempt =
  | { kind: "zone"; name: number; type: "full" | "partial" }
  | { kind: "delete"; zone: number }
  | { kind: "check"; zone: number }
  | { kind: "type"; zone: number }
  | { kind: "pause"; zone: number }
  | { kind: "record"; zone: number; type: "A" | "NS" | "CNAME" | "TXT"; host: number }
  | { kind: "certificate"; zone: number; host: number }
  | { kind: "route"; zone: number; host: number }
  | { kind: "domain"; zone: number; host: number };

const number = fc.nat(1000);
const zone = number;
export const attempt: fc.Arbitrary<Attempt> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("zone"),
      name: number,
      type: fc.constantFrom("full", "partial"),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom("delete", "check", "type", "pause"), zone }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("record"),
      zone,
      type: fc.constantFrom("A", "NS", "CNAME", "TXT"),
      host: number,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom("certificate", "route", "domain"), zone, host: number }),
  },
) as fc.Arbitrary<Attempt>;

export type Outcomes = Record<string, number>;
const pick = <T>(list: readonly T[], choice: number): T => list[choice % list.length]!;

/**
 * The zones of an honest account and of a second one to which it delegated a zone, and the attempts of a
 * third.
 */
export class Takeover {
  readonly #customers: Customers;
  readonly #outcomes: Outcomes;
  readonly #base: string;
  readonly #attacker: Customer;
  /** Hosts with their owners. */
  readonly #hosts: ReadonlyMap<string, string>;
  readonly #zones: { id: string; name: string }[] = [];

  static async start(
    customers: Customers,
    parties: { honest: Customer; given: Customer; attacker: Customer },
    number: number,
    outcomes: Outcomes,
  ): Promise<Takeover> {
    const { honest, given, attacker } = parties;
    const base = `shop${number}.example`;
    const zoneId = await honest.zone(base);
    const nested = await honest.zone(`docs.${base}`);
    const delegate = async (name: string): Promise<string[]> => {
      const made = ["ns1.selvedge.localhost", "ns2.selvedge.localhost"].map((content) =>
        honest.call("POST", `/zones/${zoneId}/dns_records`, { type: "NS", name, content }),
      );
      return (await Promise.all(made)).map(({ body }) => body.result.id as string);
    };
    await delegate(`dev.${base}`);
    const delegated = await given.zone(`dev.${base}`);
    // A zone once delegated to the attacker and later withdrawn.
    const records = await delegate(`login.${base}`);
    const lost = { id: await attacker.zone(`login.${base}`), name: `login.${base}` };
    for (const id of records) await honest.call("DELETE", `/zones/${zoneId}/dns_records/${id}`);
    const own = { id: await attacker.zone(`mine-${base}`), name: `mine-${base}` };
    const hosts = new Map([
      [base, honest.label],
      [`www.${base}`, honest.label],
      [`login.${base}`, honest.label],
      [`www.docs.${base}`, honest.label],
      [`dev.${base}`, given.label],
      [`www.dev.${base}`, given.label],
    ]);
    for (const [host, label] of hosts) {
      const [by, of] =
        label === given.label ? [given, delegated] : [honest, host.includes("docs") ? nested : zoneId];
      await by.serve(of, host);
    }
    const run = new Takeover(customers, attacker, base, hosts, outcomes);
    run.#zones.push(lost, own);
    await run.#check("the start");
    return run;
  }

  private constructor(
    customers: Customers,
    attacker: Customer,
    base: string,
    hosts: ReadonlyMap<string, string>,
    outcomes: Outcomes,
  ) {
    this.#customers = customers;
    this.#attacker = attacker;
    this.#base = base;
    this.#hosts = hosts;
    this.#outcomes = outcomes;
  }

  async play(attempts: readonly Attempt[]): Promise<void> {
    for (const each of attempts) {
      const answer = await this.#try(each);
      if (answer === undefined) continue;
      const outcome = `${each.kind} ${answer.body.success ? "done" : "refused"}`;
      this.#outcomes[outcome] = (this.#outcomes[outcome] ?? 0) + 1;
      if (answer.body.success) await this.#check(each);
    }
  }

  async end(): Promise<void> {
    for (const { id } of this.#zones) await this.#attacker.call("DELETE", `/zones/${id}`);
  }

  async #try(each: Attempt) {
    const { accountId } = this.#attacker;
    const call: Customer["call"] = (method, path, body) => this.#attacker.call(method, path, body);
    if (each.kind === "zone") {
      const names = [
        ...[...this.#hosts.keys()].flatMap((host) => [host, `a.${host}`, host.slice(host.indexOf(".") + 1)]),
        `www.mine-${this.#base}`,
      ];
      const name = pick(names, each.name);
      const answer = await call("POST", "/zones", { account: { id: accountId }, name, type: each.type });
      if (answer.body.success) this.#zones.push({ id: answer.body.result.id as string, name });
      return answer;
    }
    if (this.#zones.length === 0) return undefined;
    const { id, name } = pick(this.#zones, each.zone);
    const path = `/zones/${id}`;
    if (each.kind === "delete") {
      this.#zones.splice(
        this.#zones.findIndex((zone) => zone.id === id),
        1,
      );
      return call("DELETE", path);
    }
    if (each.kind === "check") return call("PUT", `${path}/activation_check`);
    if (each.kind === "type") return call("PATCH", path, { type: each.zone % 2 === 0 ? "full" : "partial" });
    if (each.kind === "pause") return call("PATCH", path, { paused: each.zone % 2 === 0 });
    const host = pick([...this.#hosts.keys(), name, `www.${name}`, `*.${name}`], each.host);
    switch (each.kind) {
      case "record": {
        const contents = { A: "127.0.0.1", NS: "ns1.selvedge.localhost", CNAME: this.#base, TXT: "attacker" };
        const proxied = each.type === "A" || each.type === "CNAME";
        const record = {
          type: each.type,
          name: host,
          content: contents[each.type],
          ...(proxied ? { proxied } : {}),
        };
        return call("POST", `${path}/dns_records`, record);
      }
      case "certificate":
        return call("POST", `${path}/custom_certificates`, {
          ...this.#customers.certificate(this.#attacker.label, [
            name,
            ...this.#hosts.keys(),
            `*.${this.#base}`,
          ]),
          type: "legacy_custom",
        });
      case "route": {
        const pattern = host.startsWith("*.") ? `${host}/*` : `*${host}/*`;
        return call("POST", `${path}/workers/routes`, { pattern, script: "taking" });
      }
      case "domain": {
        const origins = [{ hostname: host.replace("*", "w"), zone_id: id }];
        const records = { override_existing_origin: true, override_existing_dns_record: true, origins };
        return call("PUT", `/accounts/${accountId}/workers/scripts/taking/domains/records`, records);
      }
    }
  }

  async #check(after: Attempt | string): Promise<void> {
    await Promise.all(
      [...this.#hosts].map(async ([host, label]) => {
        const found = await this.#customers.whose(host);
        for (const [where, whose] of Object.entries(found))
          if (whose !== label)
            throw new Error(`${host} of ${label} is ${whose}'s at ${where} after ${JSON.stringify(after)}`);
      }),
    );
  }
}

/** Runs sequences of attempts until one changes the owner of a host. The server needs a TLS listener. */
export async function tryToTakeOver(
  server: TestServer,
  customers: Customers,
  parameters: { numRuns: number; seed: number },
): Promise<Outcomes> {
  const outcomes: Outcomes = {};
  const [honest, given, attacker] = [
    await customers.add("honest"),
    await customers.add("given"),
    await customers.add("attacker"),
  ];
  const script = uploadForm("export default { fetch: () => new Response('attacker') }");
  await server.client.put(`/accounts/${attacker.accountId}/workers/scripts/taking`, { body: script });
  let number = 0;
  const property = fc.asyncProperty(fc.array(attempt, { minLength: 5, maxLength: 25 }), async (attempts) => {
    const run = await Takeover.start(customers, { honest, given, attacker }, ++number, outcomes);
    try {
      await run.play(attempts);
    } finally {
      await run.end();
    }
  });
  await fc.assert(property, { ...parameters, endOnFailure: true });
  return outcomes;
}
