import type { Read } from "../../platform/storage/storage.ts";

/** A TXT record for an ACME challenge, in addition to the zone's own records. */
export interface DnsChallenge {
  zoneId: string;
  /** Name of the TXT record. */
  name: string;
  value: string;
}

/** TXT records of challenges, in addition to the zone's own: of all zones, or of one. */
export async function listDnsChallenges(read: Read, zoneId?: string): Promise<DnsChallenge[]> {
  const all = read
    .selectFrom("acme_challenges")
    .select(["zone_id", "name", "value"])
    .where("kind", "=", "dns");
  const rows = await (zoneId === undefined ? all : all.where("zone_id", "=", zoneId)).execute();
  return rows.map((row) => ({ zoneId: row.zone_id, name: row.name, value: row.value }));
}
