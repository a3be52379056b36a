import { makeError } from "./codec.ts";
import type { NoteMessage } from "./messages.ts";

/** An attempt of a step while it runs: its time, and the signal that tells its code to stop. */
export class Attempt {
  /** What the engine is told of it when it takes long. */
  readonly note: NoteMessage;
  readonly since: number;
  readonly timeoutMs: number;
  /** Rejects when its time is over. */
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
    this.late.catch(() => {}); // it may come too late to matter
  }

  /** Made when it is asked for: most steps never do, and it is not for nothing. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isAborted) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  /** Lets its time run out at some point. */
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
