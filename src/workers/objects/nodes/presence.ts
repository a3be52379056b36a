import { unawaited } from "../../../platform/util/uncaught.ts";

/** A node is asked so many times in the time that it has to answer. */
const questions = 5;

/**
 * Notices that a node answers nothing while calls of it are in progress: two nodes may lose each other while both keep
 * their leases, and a connection of which nothing arrives any more stays open for minutes. Questions are counted, not time,
 * because this process may have been suspended.
 */
export class Presence {
  readonly #ask: () => Promise<unknown>;
  readonly #silentMs: number;
  readonly #onSilence: () => void;
  #calls = 0;
  #unanswered = 0;
  #isAsked = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(ask: () => Promise<unknown>, silentMs: number, onSilence: () => void) {
    this.#ask = ask;
    this.#silentMs = silentMs;
    this.#onSilence = onSilence;
  }

  /** Watches the node during a call of it. */
  async during<Result>(call: Promise<Result>): Promise<Result> {
    this.#calls++;
    this.#timer ??= setInterval(() => this.#look(), this.#silentMs / questions).unref();
    try {
      return await call;
    } finally {
      if (--this.#calls === 0) this.#stop();
    }
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#unanswered = 0;
  }

  #look(): void {
    if (this.#isAsked && ++this.#unanswered >= questions) {
      this.#unanswered = 0;
      this.#onSilence();
      return;
    }
    if (this.#isAsked) return;
    this.#isAsked = true;
    const answered = this.#ask().then(
      () => (this.#unanswered = 0),
      () => {}, // its calls fail as well
    );
    unawaited(answered.finally(() => (this.#isAsked = false)));
  }
}
