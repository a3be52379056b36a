import type { RunOptions } from "../cell.ts";
import type { CellFault } from "../errors.ts";
import { bodyAgain, type CellBody, type CellRequest } from "./exchange.ts";

const attemptsMax = 10;
/** After this number of cell deaths that it did not cause, a request runs in a dedicated cell. */
const faultsToRunAlone = 3;

/** Safe methods (RFC 9110, 9.2.1). */
const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** Whether a request may be sent again even if a script has begun to handle it. */
export const isRetryable = ({ method, body }: CellRequest): boolean =>
  body === null && safeMethods.has(method);

/** Whether a part of the answer was sent. */
export const hasAnswered = (answer: RunOptions["answer"]): boolean =>
  "socket" in answer ? answer.socket.bytesWritten > 0 : answer.response.headersSent;

export const withBody = (options: RunOptions, body: CellBody | null): RunOptions => ({
  ...options,
  request: { ...options.request, body },
});

/** The attempts to run one request, and the body for the next one. */
export class RunAttempts {
  body: CellBody | null;
  /** Attempts that ended with a fault of the cell, which this request's script or another one may have caused. */
  faults = 0;
  #count = 0;

  constructor(body: CellBody | null) {
    this.body = body;
  }

  get mustRunAlone(): boolean {
    return this.faults >= faultsToRunAlone;
  }

  /** Counts an attempt that ended with a fault. Returns whether there may be another one. */
  next({ kind, isUnprocessed, hasObjects }: CellFault, { request, answer }: RunOptions): boolean {
    const hadBody = this.body !== null;
    this.body = (this.body && bodyAgain(this.body)) ?? null;
    this.#count++;
    if (kind !== "killed" && kind !== "ended") this.faults++;
    const canSend =
      (isRetryable(request) && !hasObjects) || (isUnprocessed && (!hadBody || this.body !== null));
    return canSend && !hasAnswered(answer) && this.#count < attemptsMax;
  }
}
