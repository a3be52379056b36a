import { zoneErrors } from "../../../control/zones/errors.ts";
import type { Zone } from "../../../control/zones/zone.ts";
import { scriptDomainErrors, routeErrors } from "./errors.ts";
import type { AnyCall } from "../api-collection.ts";
import { parsePattern, type RoutePattern } from "./route-table.ts";

export interface NamedZone {
  zone_id?: string | undefined;
  zone_name?: string | undefined;
}

/** The account's zone by id, by name, or by a host within it. Throws unless the caller may edit its routes. */
export function zoneOfHost(call: AnyCall, { zone_id, zone_name }: NamedZone, host: string): Zone {
  const zone = find(call, zone_id, zone_name ?? host, zone_name !== undefined);
  if (zone === undefined) {
    if (zone_id !== undefined) throw zoneErrors.notFound(zone_id);
    throw scriptDomainErrors.outside(host);
  }
  requireRoutesEdit(call, zone);
  return zone;
}

/**
 * Throws unless the caller may edit the routes and domains of scripts in a zone. The path of the operation names only the
 * account, so its declaration cannot check this.
 */
export function requireRoutesEdit({ actor }: AnyCall, { id, accountId, name }: Zone): void {
  if (actor.can("workers_routes:edit", { zoneId: id, accountId })) return;
  throw routeErrors.forbidden(name);
}

/** The zone of a route for which only the pattern is given. */
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
