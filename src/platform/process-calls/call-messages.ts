/** The name and the details of a call, with the URL and the headers of the request that it is about. */
export interface CallHead {
  name: string;
  details: unknown;
  /** A random text in each call. A failure that begins with it comes from the other process and not from a script. */
  mark: string;
  url: string;
  /** A flat list of names and values. */
  headers: readonly string[];
}

/** Carries the head of a call, as JSON. It never leaves the processes of the node. */
export const callHeader = "x-selvedge-call";
/** The response header with the reason why a call failed: the mark of the call, and JSON. */
export const failureHeader = "x-selvedge-call-failed";
/**
 * Scripts may send 128 KiB of headers, and throw 256 KiB. JSON writes a character with up to six, and a part of it may
 * be among the details once more.
 */
export const headBytesMax = 4 * 1024 * 1024;

/** A call failed in the other process. Caller and handler define the form of the details. */
export class FailedCall extends Error {
  readonly details: unknown;

  constructor(details: unknown) {
    super("A call of another process failed");
    this.details = details;
  }
}
