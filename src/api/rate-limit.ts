/** Counts calls in fixed windows, one counter for each caller. */
export class RateLimiter {
  readonly #limit: number;
  readonly #windowMs: number;
  readonly #now: () => number;
  readonly #counts = new Map<string, number>();
  #windowStartMs = 0;

  /** `limit` calls in `windowMs`; a limit of 0 allows everything. */
  constructor(limit: number, windowMs: number, now: () => number = Date.now) {
    this.#limit = limit;
    this.#windowMs = windowMs;
    this.#now = now;
  }

  /** Counts a call. Returns 0 when it is allowed, else the seconds until the next window. */
  take(caller: string): number {
    if (this.#limit === 0) return 0;
    const now = this.#now();
    if (now - this.#windowStartMs >= this.#windowMs) {
      this.#windowStartMs = now;
      this.#counts.clear();
    }
    const count = (this.#counts.get(caller) ?? 0) + 1;
    this.#counts.set(caller, count);
    if (count <= this.#limit) return 0;
    return Math.max(1, Math.ceil((this.#windowStartMs + this.#windowMs - now) / 1000));
  }
}
