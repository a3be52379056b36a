/** Token buckets by key. Each refills by `ratePerSecond` up to `burst` tokens. A rate of 0 means no limit. */
export class TokenBuckets {
  readonly #ratePerSecond: number;
  readonly #burst: number;
  readonly #now: () => number;
  /** Buckets that are not full. */
  readonly #buckets = new Map<string, { tokens: number; atMs: number }>();

  constructor(ratePerSecond: number, burst = ratePerSecond, now: () => number = Date.now) {
    this.#ratePerSecond = ratePerSecond;
    this.#burst = burst;
    this.#now = now;
  }

  /** Milliseconds until `count` tokens can be taken. A full bucket allows even more than it holds. */
  waitMs(key: string, count: number): number {
    if (this.#ratePerSecond === 0) return 0;
    const missing = Math.min(count, this.#burst) - this.#tokensOf(key);
    return missing <= 0 ? 0 : Math.ceil((missing / this.#ratePerSecond) * 1000);
  }

  /**
   * Takes tokens, even more than there are: later callers then wait longer. A negative count returns tokens.
   */
  take(key: string, count: number): void {
    if (this.#ratePerSecond === 0 || count === 0) return;
    const tokens = Math.min(this.#tokensOf(key) - count, this.#burst);
    this.#buckets.delete(key); // keeps the oldest first
    if (tokens < this.#burst) this.#buckets.set(key, { tokens, atMs: this.#now() });
    this.#forgetFull();
  }

  #tokensOf(key: string): number {
    const bucket = this.#buckets.get(key);
    if (bucket === undefined) return this.#burst;
    const elapsedMs = Math.max(0, this.#now() - bucket.atMs);
    return Math.min(this.#burst, bucket.tokens + (elapsedMs / 1000) * this.#ratePerSecond);
  }

  #forgetFull(): void {
    for (const key of this.#buckets.keys()) {
      if (this.#tokensOf(key) < this.#burst) return;
      this.#buckets.delete(key);
    }
  }
}
