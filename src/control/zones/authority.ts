import type { Write } from "../../platform/storage/storage.ts";
import { governing, isInside } from "./precedence.ts";
import * as store from "./store.ts";
import { zoneErrors } from "./errors.ts";
import type { Zone } from "./zone.ts";

export const verificationName = (zoneName: string): string => `cloudflare-verify.${zoneName}`;

/** A zone to be created or activated, with the proof that its account owns the name. */
export interface Claim {
  zone: Zone;
  /** The content of the TXT record that proves it. */
  key: string;
  /** Whether the public DNS has the record. */
  isProved: boolean;
}

/**
 * Returns the name whose records authorize a zone inside or around zones of other accounts: an outer zone
 * that delegates to it, or its own name if proved; null if no other account is affected. Throws if it is not
 * authorized. `related` has every zone inside or around it, read in the transaction.
 */
export async function authorityOf(
  trx: Write,
  claim: Claim,
  related: readonly Zone[],
): Promise<string | null> {
  const { zone, key, isProved } = claim;
  const outer = governing(around(zone, related));
  const isForeign = outer !== undefined && outer.accountId !== zone.accountId;
  if (isForeign && (await delegates(trx, outer, claim))) return outer.name;
  if (isProved) return zone.name;
  if (isForeign) throw zoneErrors.insideForeign(zone.name, outer.name, zone.nameServers.join(" and "), key);
  return null;
}

/** Throws if other accounts have zones directly inside an unproved zone. */
export function refuseAround({ zone, key, isProved }: Claim, related: readonly Zone[]): void {
  if (isProved) return;
  const inside = related.filter(({ name }) => isInside(name, zone.name));
  const isDirect = ({ name }: Zone): boolean => !inside.some((other) => isInside(name, other.name));
  const foreign = inside.filter((each) => isDirect(each) && each.accountId !== zone.accountId);
  // Zones delegated by an earlier zone of this name may stay.
  if (foreign.some(({ authorizedBy }) => authorizedBy !== zone.name))
    throw zoneErrors.aroundForeign(zone.name, key);
}

/** Whether the records of the outer zone delegate the inner one to its account, with NS or TXT records. */
export async function delegates(trx: Write, outer: Zone, { zone, key }: Claim): Promise<boolean> {
  const verification = verificationName(zone.name);
  const records = await store.listDelegations(
    trx,
    outer.id,
    [...cutsBetween(zone.name, outer.name)],
    verification,
  );
  if (records.some(({ type, content }) => type === "TXT" && content === `"${key}"`)) return true;
  const byCut = Map.groupBy(
    records.filter(({ type }) => type === "NS"),
    ({ name }) => name,
  );
  return [...byCut.values()].some((servers) => {
    const named = new Set(servers.map(({ content }) => content));
    return zone.nameServers.every((server) => named.has(server.toLowerCase()));
  });
}

/** The zones around a zone, outermost first. */
const around = (zone: Zone, related: readonly Zone[]): Zone[] =>
  related.filter(({ name }) => isInside(zone.name, name)).sort((a, b) => a.name.length - b.name.length);

/**
 * The names at which the outer zone can delegate the inner one: the inner zone's name and the names between
 * the two.
 */
function* cutsBetween(inner: string, outer: string): Generator<string> {
  for (let name = inner; name !== outer; name = name.slice(name.indexOf(".") + 1)) yield name;
}
