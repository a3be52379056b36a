import type { NameKey } from "../wire/name.ts";
import type { RRset } from "./rrset.ts";

/** Signs a zone's answers. dnssec/ implements it and is loaded only if a zone is signed. */
export interface RRsetSigner {
  /** DNSKEY, CDS and CDNSKEY. */
  apexSets(): RRset[];
  /** The RRSIG of an RRset at an owner, and the time until which it may be cached. */
  signature(owner: NameKey, set: RRset): { set: RRset; keepUntilMs: number };
  /** The NSEC record that lists a name's types or denies the name's existence (RFC 9824). */
  denial(owner: NameKey, types: readonly number[] | undefined, ttl: number): RRset;
}

/** The limit on signatures is reached. The query gets no response, as in any flood. */
export class Overloaded extends Error {}
