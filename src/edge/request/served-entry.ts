import type { EdgeZone, HostEntry } from "../configuration/snapshot.ts";
import { visitorErrors } from "../http/errors.ts";

/** The record of a host in its zone. Throws when the zone is paused or the record is not proxied. */
export function servedEntry(zone: EdgeZone | undefined, host: string): HostEntry | undefined {
  const entry = zone?.resolve(host);
  if (zone === undefined || entry === undefined) return entry;
  if (zone.isPaused) throw visitorErrors.paused();
  if (!entry.isProxied)
    throw entry.targets.length === 0 ? visitorErrors.unknownHost() : visitorErrors.unproxied();
  return entry;
}
