import type { NameKey } from "../wire/name.ts";
import type { RRset } from "./rrset.ts";

/** The part of a response after the question and without the OPT record, ready to be copied. */
export interface DnsAnswer {
  rcode: number;
  isAuthoritative: boolean;
  answers: number;
  authorities: number;
  additionals: number;
  body: Buffer;
  /**
   * The name in the question that the body's first pointer refers to. Its offset depends on the question's
   * length.
   */
  suffix: NameKey | undefined;
  /** Set if the answer uses several names, and is therefore valid only until the next change of any name. */
  epoch: number | undefined;
  /** When its signatures must be renewed or its addresses looked up again. */
  keepUntilMs: number;
  extendedError: number | undefined;
}

/** An RRset with its owner. */
export interface AnswerEntry {
  owner: NameKey;
  set: RRset;
}

export interface Sections {
  answer: AnswerEntry[];
  authority: AnswerEntry[];
  additional: AnswerEntry[];
}
export const noSections = (): Sections => ({ answer: [], authority: [], additional: [] });
