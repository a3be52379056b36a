/** An object with a deadline that can change. */
export interface Timed {
  /** In the time of `performance.now()`; Infinity while there is no deadline. */
  deadlineMs: number;
  /** Called once the deadline has passed; it must move the deadline or leave the clock. */
  expire(): void;
}

const tickMsMax = 1000;
const tickMsMin = 5;

/**
 * A coarse clock for the timeouts of many connections: one timer looks at all of them, so a request that sets and moves
 * deadlines costs no timer. A deadline passes at most two ticks late, and never early.
 */
export class CoarseClock {
  readonly #tickMs: number;
  readonly #timed = new Set<Timed>();
  #timer: NodeJS.Timeout | undefined;
  /** The time of the last tick, in ms. */
  #nowMs = 0;

  /** `timeouts` are the timeouts in use, in ms. The clock ticks five times within the shortest. */
  constructor(timeouts: readonly number[]) {
    this.#tickMs = Math.max(tickMsMin, Math.min(tickMsMax, ...timeouts.map((ms) => ms / 5)));
  }

  add(timed: Timed): void {
    this.#timed.add(timed);
    if (this.#timer !== undefined) return;
    this.#nowMs = performance.now();
    this.#timer = setInterval(() => this.#tick(), this.#tickMs).unref();
  }

  delete(timed: Timed): void {
    this.#timed.delete(timed);
    if (this.#timed.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** A deadline that is at least `ms` from now. */
  in(ms: number): number {
    return this.#nowMs + ms + this.#tickMs;
  }

  #tick(): void {
    this.#nowMs = performance.now();
    for (const timed of this.#timed) if (timed.deadlineMs < this.#nowMs) timed.expire();
  }
}
