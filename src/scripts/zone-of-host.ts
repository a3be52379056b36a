import { ApiError } from "../api/errors.ts";
import { zoneErrors, type Zone } from "../zones/zone.ts";
import { domainErrors } from "./domains.ts";
import type { AnyCall } from "./place.ts";
import { parsePattern, type RoutePattern } from "./route-table.ts";
import { routeErrors } from "./routes.ts";

export interface NamedZone {
  zone_id?: string | undefined;
  zone_name?: string | undefined;
}

/** The account's zone that clients name by its id, by its name, or by a host within it; whose routes they may edit. */
export function zoneOfHost(call: AnyCall, { zone_id, zone_name }: NamedZone, host: string): Zone {
  const zone = find(call, zone_id, zone_name ?? host, zone_name !== undefined);
  if (zone === undefined) {
    if (zone_id !== undefined) throw zoneErrors.notFound(zone_id);
    throw domainErrors.outside(host);
  }
  const { actor } = call;
  if (!actor.can("workers_routes:edit", { zoneId: zone.id, accountId: zone.accountId }))
    throw new ApiError(
      403,
      10000,
      `Authentication error: the credentials lack "Workers Routes Write" on the zone ${zone.name}`,
    );
  return zone;
}

/** The zone of a route that is given with its pattern only. */
export function zoneOfPattern(call: AnyCall, named: NamedZone, text: string): Zone {
  const pattern: RoutePattern | string = parsePattern(text);
  if (typeof pattern === "string") throw routeErrors.invalid(text, pattern);
  return zoneOfHost(call, named, pattern.host.replace(/^\./, ""));
}

function find(
  { account, services }: AnyCall,
  id: string | undefined,
  name: string,
  isExact: boolean,
): Zone | undefined {
  const own = services.zones.list().filter(({ accountId }) => accountId === account.id);
  if (id !== undefined) return own.find((zone) => zone.id === id);
  const wanted = name.toLowerCase();
  return own
    .filter((zone) => zone.name === wanted || (!isExact && wanted.endsWith(`.${zone.name}`)))
    .sort((a, b) => b.name.length - a.name.length)[0];
}
