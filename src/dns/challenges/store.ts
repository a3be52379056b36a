import type { Read } from "../../platform/storage/storage.ts";
import type { DnsChallenge } from "../name-server/zone-updater.ts";

/** TXT records of challenges, beside the zone's own: all, or those of one zone. */
export async function listDnsChallenges(read: Read, zoneId?: string): Promise<DnsChallenge[]> {
  const all = read
    .selectFrom("acme_challenges")
    .select(["zone_id", "name", "value"])
    .where("kind", "=", "dns");
  const rows = await (zoneId === undefined ? all : all.where("zone_id", "=", zoneId)).execute();
  return rows.map((row) => ({ zoneId: row.zone_id, name: row.name, value: row.value }));
}
