import { makeError } from "./codec.ts";
import type { NoteMessage } from "./messages.ts";

/** A running attempt of a step: its timeout, and the signal that aborts its code. */
export class Attempt {
  /** The message that reports a long attempt to the engine. */
  readonly note: NoteMessage;
  readonly since: number;
  readonly timeoutMs: number;
  /** Rejects after the timeout. */
  readonly late: Promise<never>;
  isNoted = false;
  #reject!: (error: Error) => void;
  #controller: AbortController | undefined;
  #cancel: (() => void) | undefined;
  #isAborted = false;

  constructor(note: NoteMessage, since: number, timeoutMs: number) {
    this.note = note;
    this.since = since;
    this.timeoutMs = timeoutMs;
    this.late = new Promise((_, reject) => (this.#reject = reject));
    this.late.catch(() => {}); // the attempt may have ended before
  }

  /** Created on first use: most steps never read it, and creating it has a cost. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isAborted) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  /** Starts the timeout. */
  limit(after: (ms: number, run: () => void) => () => void, leftMs: number): void {
    this.#cancel ??= after(leftMs, () => {
      this.#reject(makeError("WorkflowTimeoutError", `Execution timed out after ${this.timeoutMs}ms`));
      this.abort();
    });
  }

  abort(): void {
    this.#isAborted = true;
    this.#controller?.abort();
  }

  end(): void {
    this.#cancel?.();
  }
}
