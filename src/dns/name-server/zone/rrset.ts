import { types } from "../wire/constants.ts";
import { rdataOf, typeNumber, type EncodableRecord } from "../wire/rdata.ts";

/** The records of one type at one name, in wire form. */
export interface RRset {
  readonly type: number;
  readonly ttl: number;
  readonly rdatas: readonly Buffer[];
}

/** Offsets of the name in the rdata of types whose name may be compressed (RFC 3597 §4). */
const nameOffsets = new Map<number, number>([
  [types.NS, 0],
  [types.CNAME, 0],
  [types.PTR, 0],
  [types.MX, 2],
]);
export const compressibleAt = (type: number): number => nameOffsets.get(type) ?? -1;

/** TTL in answers for records whose TTL is automatic, which is stored as 1. */
const automaticTtlSeconds = 300;
export const effectiveTtl = (ttl: number): number => (ttl === 1 ? automaticTtlSeconds : ttl);

/**
 * The RRset of records of one type. Its TTL is the lowest of theirs, because an RRset has only one (RFC 2181
 * §5.2).
 */
export function rrsetOf(records: readonly (EncodableRecord & { ttl: number })[]): RRset {
  return {
    type: typeNumber(records[0]!.type),
    ttl: Math.min(...records.map(({ ttl }) => effectiveTtl(ttl))),
    rdatas: records.map(rdataOf),
  };
}
