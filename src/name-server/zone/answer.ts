import type { NameKey } from "../wire/name.ts";
import type { RRset } from "./rrset.ts";

/** All of an answer but the header, the question and the OPT record, ready to be copied behind the question. */
export interface Answer {
  rcode: number;
  isAuthoritative: boolean;
  answers: number;
  authorities: number;
  additionals: number;
  body: Buffer;
  /** The body begins with a pointer to this name inside the question, which depends on the question's length. */
  suffix: NameKey | undefined;
  /** Made of more than one name, and so to be made again when anything has changed since. */
  epoch: number | undefined;
  /** Signatures in it are to be renewed then, or addresses looked up again. */
  keepUntilMs: number;
  extendedError: number | undefined;
}

/** An RRset at an owner. */
export interface Entry {
  owner: NameKey;
  set: RRset;
}

export interface Sections {
  answer: Entry[];
  authority: Entry[];
  additional: Entry[];
}
export const noSections = (): Sections => ({ answer: [], authority: [], additional: [] });
