import { types } from "../name-server/wire/constants.ts";
import { nameKey, type NameKey } from "../name-server/wire/name.ts";
import type { AnswerEntry } from "../name-server/zone/answer.ts";
import type { ZoneNode, CnameTarget } from "../name-server/zone/node.ts";
import { rrsetOf, type RRset } from "../name-server/zone/rrset.ts";
import type { ServedZone } from "../name-server/zone/zone.ts";

/** The content of a name in a transfer. */
export interface Transferred {
  sets: readonly RRset[];
  /** The target whose addresses the name gets, because an apex cannot have its CNAME. */
  flattened: CnameTarget | undefined;
}

const keyTypes: ReadonlySet<number> = new Set([types.DNSKEY, types.CDS, types.CDNSKEY]);

/**
 * The RRsets of a name for secondaries. Signatures are not included, because they are made for each answer.
 * Therefore our keys are included only if other providers sign the zone too.
 */
export function transferred(zone: ServedZone, node: ZoneNode): Transferred {
  const { sets, alias, flattened } = zone.contents(node);
  const isKeyed = zone.configuration.dnssec === undefined || zone.configuration.dnssec.isMultiSigner;
  const shown = [...sets.values()].filter(
    ({ type }) => type !== types.SOA && (isKeyed || node.key !== zone.key || !keyTypes.has(type)),
  );
  if (alias !== undefined) shown.push(alias);
  const cname = node.records.find(({ type }) => type === "CNAME");
  const isAlone = cname !== undefined && shown.length === 0 && node.key !== zone.key;
  if (flattened !== undefined && isAlone) return { sets: [rrsetOf([cname])], flattened: undefined };
  return { sets: shown, flattened };
}

/** The SOA record that begins and ends a transfer. Differences contain it only there. */
export const soaEntry = (zone: ServedZone): AnswerEntry => ({
  owner: zone.key,
  set: zone.contents(zone.node(zone.key)!).sets.get(types.SOA)!,
});

/** One entry for each record, so that messages can be split anywhere. */
export const single = (owner: NameKey, set: RRset): AnswerEntry[] =>
  set.rdatas.map((rdata) => ({ owner, set: { type: set.type, ttl: set.ttl, rdatas: [rdata] } }));

/** All records of names; undefined if some depend on external names. */
export function entriesOf(zone: ServedZone, names: readonly string[]): AnswerEntry[] | undefined {
  const entries: AnswerEntry[] = [];
  for (const name of names) {
    const node = zone.node(nameKey(name));
    if (node === undefined) continue;
    const { sets, flattened } = transferred(zone, node);
    if (flattened !== undefined) return undefined;
    for (const set of sets) entries.push(...single(node.key, set));
  }
  return entries;
}
