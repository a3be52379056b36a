import { types } from "../wire/constants.ts";
import { nameKey, type NameKey } from "../wire/name.ts";
import type { Entry } from "../zone/answer.ts";
import type { Node, Target } from "../zone/node.ts";
import { rrsetOf, type RRset } from "../zone/rrset.ts";
import type { ServedZone } from "../zone/zone.ts";

/** What a name has in a transfer. */
export interface Transferred {
  sets: readonly RRset[];
  /** Its addresses are those of this name: an apex cannot have the CNAME that it was given. */
  flattened: Target | undefined;
}

const keyTypes: ReadonlySet<number> = new Set([types.DNSKEY, types.CDS, types.CDNSKEY]);

/**
 * The RRsets of a name for those who serve copies of the zone. Signatures are no part of it, as they are made for each
 * answer; so our keys are only where others sign the zone with their own, too.
 */
export function transferred(zone: ServedZone, node: Node): Transferred {
  const { sets, alias, flattened } = zone.contents(node);
  const isKeyed = zone.facts.dnssec === undefined || zone.facts.dnssec.isMultiSigner;
  const shown = [...sets.values()].filter(
    ({ type }) => type !== types.SOA && (isKeyed || node.key !== zone.key || !keyTypes.has(type)),
  );
  if (alias !== undefined) shown.push(alias);
  const cname = node.records.find(({ type }) => type === "CNAME");
  const isAlone = cname !== undefined && shown.length === 0 && node.key !== zone.key;
  if (flattened !== undefined && isAlone) return { sets: [rrsetOf([cname])], flattened: undefined };
  return { sets: shown, flattened };
}

/** The SOA record that begins and ends a transfer, and is in no difference by itself. */
export const soaEntry = (zone: ServedZone): Entry => ({
  owner: zone.key,
  set: zone.contents(zone.node(zone.key)!).sets.get(types.SOA)!,
});

/** One record to an entry, so that they can be parted over messages anywhere. */
export const single = (owner: NameKey, set: RRset): Entry[] =>
  set.rdatas.map((rdata) => ({ owner, set: { type: set.type, ttl: set.ttl, rdatas: [rdata] } }));

/** All records of names, or undefined when some depend on names elsewhere. */
export function entriesOf(zone: ServedZone, names: readonly string[]): Entry[] | undefined {
  const entries: Entry[] = [];
  for (const name of names) {
    const node = zone.node(nameKey(name));
    if (node === undefined) continue;
    const { sets, flattened } = transferred(zone, node);
    if (flattened !== undefined) return undefined;
    for (const set of sets) entries.push(...single(node.key, set));
  }
  return entries;
}
