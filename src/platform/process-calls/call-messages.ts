/** The name and the details of a call, with the URL and the headers of the request that it is about. */
export interface CallHead {
  name: string;
  details: unknown;
  /** A random text. An answer that begins its failure with it comes from the process, not from a script's code. */
  mark: string;
  url: string;
  /** Names and values in turn. */
  headers: readonly string[];
}

/** Carries the head of a call, as JSON. It never leaves the processes of the node. */
export const callHeader = "x-selvedge-call";
/** The header of an answer that says why the call failed: the mark of the call, and JSON. */
export const failureHeader = "x-selvedge-call-failed";
/** Scripts may send 128 KiB of headers, which JSON makes longer. */
export const headBytesMax = 1024 * 1024;

/** A call failed in the other process. The details are in the words of those who call and answer. */
export class FailedCall extends Error {
  readonly details: unknown;

  constructor(details: unknown) {
    super("A call of another process failed");
    this.details = details;
  }
}
