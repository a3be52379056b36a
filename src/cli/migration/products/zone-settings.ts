import { z } from "zod";
import { objectsIn } from "../account/lists.ts";
import { path } from "../account/path.ts";
import type { MigratedAccount } from "../account/account.ts";
import { CallRefused } from "../failure.ts";
import { product } from "../product.ts";

/** The settings that an installation has, of those in a zone's list. */
const listed: ReadonlySet<string> = new Set([
  "ssl",
  "always_use_https",
  "transformations",
  "transformations_allowed_origins",
  "bot_management",
]);
const smartRouting = "smart_routing";
const universalSsl = "universal_ssl";
const onOff = (isOn: unknown): string => (isOn === true ? "on" : "off");
const smartRoutingPath = (zoneId: string): string => path`/zones/${zoneId}/argo/smart_routing`;
const universalPath = (zoneId: string): string => path`/zones/${zoneId}/ssl/universal/settings`;

/** The settings of a zone, including two that have paths of their own. */
export const zoneSetting = product({
  name: "zone_setting",
  group: "settings",
  scope: "zone",
  schema: z.object({ id: z.string().max(100), value: z.string().max(4096) }),
  key: ({ id }) => id,
  async *read({ account, zone, leaveOut }) {
    const { result } = await account.client.get(path`/zones/${zone.id}/settings`);
    const others: string[] = [];
    for (const { id, value } of objectsIn(result)) {
      if (listed.has(String(id))) yield { id: String(id), value: { id, value } };
      else others.push(String(id));
    }
    leaveOut(others, "an installation has no such setting");
    const routing = await optional(account, smartRoutingPath(zone.id));
    if (routing !== undefined)
      yield { id: smartRouting, value: { id: smartRouting, value: routing["value"] } };
    const universal = await optional(account, universalPath(zone.id));
    if (universal !== undefined)
      yield { id: universalSsl, value: { id: universalSsl, value: onOff(universal["enabled"]) } };
  },
  async write({ account: { client }, zone }, { id, value }) {
    if (id === smartRouting) await client.send("PATCH", smartRoutingPath(zone.id), { value });
    else if (id === universalSsl)
      await client.send("PATCH", universalPath(zone.id), { enabled: value === "on" });
    else await client.send("PATCH", path`/zones/${zone.id}/settings`, { items: [{ id, value }] });
  },
});

/** A setting that not every plan has. */
async function optional(
  { client }: MigratedAccount,
  from: string,
): Promise<Record<string, unknown> | undefined> {
  try {
    return ((await client.get(from)).result ?? undefined) as Record<string, unknown> | undefined;
  } catch (error) {
    if (error instanceof CallRefused && error.isAbsence) return undefined;
    throw error;
  }
}
