import type { RestoredRows } from "../../platform/storage/changes/listeners.ts";
import type { Read } from "../../platform/storage/storage.ts";
import type { DnsRecord } from "./record.ts";
import { listInvolved, listOfZone } from "./store.ts";

/** Records of a zone that were read again. */
export interface RereadRecords {
  zoneId: string;
  /** Whether these are all names of the zone. */
  isWhole: boolean;
  /** The records in the order of `listAtName`; an empty list for a name that no longer exists. */
  names: ReadonlyMap<string, readonly DnsRecord[]>;
}

/**
 * Reads the records again that follow from restored rows: those at the names of the rows, and all records of restored
 * zones that the component does not have (`has`). Resolves with undefined if it has to read everything.
 */
export async function rereadRecords(
  read: Read,
  restored: RestoredRows | undefined,
  has: (zoneId: string) => boolean,
): Promise<RereadRecords[] | undefined> {
  const zones = restored?.get("zones") ?? [];
  const changed = restored?.get("dns_records") ?? [];
  if (restored === undefined || zones === "many" || changed === "many") return undefined;
  const missing = new Set(zones.map(({ id }) => String(id)).filter((id) => !has(id)));
  const names = Map.groupBy(changed, ({ zone_id: zoneId }) => String(zoneId));
  const reread: RereadRecords[] = [];
  for (const zoneId of missing) reread.push({ zoneId, isWhole: true, names: await allNames(read, zoneId) });
  for (const [zoneId, rows] of names) {
    if (!has(zoneId)) continue;
    const touched = [...new Set(rows.map(({ name }) => String(name)))];
    const found = Map.groupBy(await listInvolved(read, zoneId, [], touched), ({ name }) => name);
    const at = new Map(touched.map((name) => [name, found.get(name) ?? []]));
    reread.push({ zoneId, isWhole: false, names: at });
  }
  return reread;
}

async function allNames(read: Read, zoneId: string): Promise<Map<string, DnsRecord[]>> {
  const names = Map.groupBy(await listOfZone(read, zoneId), ({ name }) => name);
  for (const records of names.values())
    records.sort((a, b) => a.createdOn - b.createdOn || (a.id < b.id ? -1 : 1));
  return names;
}
