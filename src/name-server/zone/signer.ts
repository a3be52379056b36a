import type { NameKey } from "../wire/name.ts";
import type { RRset } from "./rrset.ts";

/** What a signed zone needs to be answered; made by dnssec/ only when there is such a zone. */
export interface Signer {
  /** DNSKEY, CDS and CDNSKEY. */
  apexSets(): RRset[];
  /** The RRSIG of an RRset at an owner, and until when an answer with it may be kept. */
  signature(owner: NameKey, set: RRset): { set: RRset; keepUntilMs: number };
  /** The NSEC that says which types a name has, or that there is no such name (RFC 9824). */
  denial(owner: NameKey, types: readonly number[] | undefined, ttl: number): RRset;
}

/** More signatures are asked for than may be made; the question goes unanswered, as in any flood. */
export class Overloaded extends Error {}
