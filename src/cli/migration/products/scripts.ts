import { z } from "zod";
import { objectsIn } from "../account/lists.ts";
import { path } from "../account/path.ts";
import { product } from "../product.ts";
import { codeShape, comparableCode, reachableCode, readCode, writeCode } from "./script-code.ts";

const subdomain = z.object({ enabled: z.boolean(), previews_enabled: z.boolean().default(false) });

/** The account's scripts, with schedules and whether they have a name below the account's own. */
export const script = product({
  name: "script",
  group: "scripts",
  scope: "account",
  schema: z.object({ ...codeShape, schedules: z.array(z.string().max(255)).max(100), subdomain }),
  key: ({ name }) => name,
  async *read(from) {
    const { client, accountId } = from.account;
    const { result } = await client.get(path`/accounts/${accountId}/workers/scripts`);
    for (const summary of objectsIn(result)) {
      const name = String(summary["id"]);
      const at = path`/accounts/${accountId}/workers/scripts/${name}`;
      const code = await readCode(from, at, `${at}/content/v2`, summary);
      const schedules = (await client.get(`${at}/schedules`)).result as { schedules?: unknown } | null;
      const crons = objectsIn(schedules?.schedules).map(({ cron }) => String(cron));
      const { result: host } = await client.get(`${at}/subdomain`);
      yield { id: name, value: { ...code, schedules: crons.sort(), subdomain: host } };
    }
  },
  async write({ account }, { schedules, subdomain: host, ...code }, before) {
    const at = path`/accounts/${account.accountId}/workers/scripts/${code.name}`;
    const old = before === undefined ? undefined : parts(before.value);
    const now = parts({ ...code, schedules, subdomain: host });
    if (now.code !== old?.code) await writeCode(account, at, code, before);
    if (now.schedules !== (old?.schedules ?? "[]"))
      await account.client.send(
        "PUT",
        `${at}/schedules`,
        schedules.map((cron) => ({ cron })),
      );
    if (now.host !== old?.host) await account.client.send("POST", `${at}/subdomain`, host);
  },
  async remove({ account }, { value: { name } }) {
    await account.client.send(
      "DELETE",
      `${path`/accounts/${account.accountId}/workers/scripts/${name}`}?force=true`,
    );
  },
  comparable: comparableCode,
  reachable: reachableCode,
});

/** The parts that have operations of their own. */
function parts({ schedules, subdomain, ...code }: z.output<typeof script.schema>): Record<string, string> {
  return {
    code: JSON.stringify(comparableCode(code as never)),
    schedules: JSON.stringify(schedules),
    host: JSON.stringify(subdomain),
  };
}

/** URL patterns, and the scripts that handle their requests. */
export const route = product({
  name: "route",
  group: "scripts",
  scope: "zone",
  schema: z.object({
    pattern: z.string().min(1).max(1024),
    script: z.string().max(255).nullable().default(null),
  }),
  key: ({ pattern }) => pattern,
  async *read({ account, zone }) {
    const { result } = await account.client.get(path`/zones/${zone.id}/workers/routes`);
    for (const { id, pattern, script } of objectsIn(result))
      yield { id: String(id), value: { pattern, script: script ?? null } };
  },
  async write({ account, zone }, { pattern, script }, before) {
    const all = path`/zones/${zone.id}/workers/routes`;
    const body = { pattern, ...(script === null ? {} : { script }) };
    if (before === undefined) await account.client.send("POST", all, body);
    else await account.client.send("PUT", all + path`/${before.id ?? ""}`, body);
  },
  async remove({ account, zone }, { id }) {
    await account.client.send("DELETE", path`/zones/${zone.id}/workers/routes/${id ?? ""}`);
  },
});

/** Hosts that scripts have for themselves. Their DNS records are made with them. */
export const domain = product({
  name: "domain",
  group: "scripts",
  scope: "zone",
  schema: z.object({ hostname: z.string().max(255), service: z.string().max(255) }),
  key: ({ hostname }) => hostname,
  async *read({ account, zone }) {
    const { result } = await account.client.get(path`/accounts/${account.accountId}/workers/domains`);
    for (const each of objectsIn(result))
      if (each["zone_id"] === zone.id || each["zone_name"] === zone.name)
        yield { id: String(each["id"]), value: each };
  },
  async write({ account, zone }, { hostname, service }) {
    const body = { hostname, service, zone_id: zone.id, environment: "production" };
    await account.client.send("PUT", path`/accounts/${account.accountId}/workers/domains`, body);
    account.forgetDomains();
  },
  async remove({ account }, { id }) {
    await account.client.send("DELETE", path`/accounts/${account.accountId}/workers/domains/${id ?? ""}`);
    account.forgetDomains();
  },
});
