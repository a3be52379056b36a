/** Limits calls in fixed windows, with one counter for each caller. */
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

  /**
   * Counts one call, or a batch of `calls`. The first batch of a window is allowed even if it exceeds the
   * limit. Returns 0 if allowed, else the seconds until the next window.
   */
  take(caller: string, calls = 1): number {
    if (this.#limit === 0) return 0;
    const now = this.#now();
    if (now - this.#windowStartMs >= this.#windowMs) {
      this.#windowStartMs = now;
      this.#counts.clear();
    }
    const before = this.#counts.get(caller) ?? 0;
    if (before === 0 || before + calls <= this.#limit) {
      this.#counts.set(caller, before + calls);
      return 0;
    }
    return Math.max(1, Math.ceil((this.#windowStartMs + this.#windowMs - now) / 1000));
  }
}
