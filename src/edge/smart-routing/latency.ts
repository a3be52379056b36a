/** Time in which better samples replace a worse one. */
const decayMs = 7000;
const windowSize = 64;
const coldSamples = 3;

/**
 * Time to first byte of a path as a peak EWMA: it rises at once and falls slowly. Samples are filtered by the
 * median of the last three, so that one slow page does not count as a slow path.
 */
export class Latency {
  #ms: number | undefined;
  #atMs = 0;
  #count = 0;
  readonly #recent: number[] = [];
  readonly #window: number[] = [];
  #p95: { ms: number; count: number } | undefined;

  /** Undefined before the first sample. */
  get ms(): number | undefined {
    return this.#ms;
  }

  /** The first samples include the cost of new connections. */
  get isCold(): boolean {
    return this.#count < coldSamples;
  }

  get atMs(): number {
    return this.#atMs;
  }

  add(sampleMs: number, nowMs: number): void {
    this.#window[this.#count++ % windowSize] = sampleMs;
    this.#recent.push(sampleMs);
    if (this.#recent.length > coldSamples) this.#recent.shift();
    const sorted = this.#recent.toSorted((a, b) => a - b);
    this.#take(sorted[this.#count < coldSamples ? 0 : 1]!, nowMs, this.#count <= coldSamples);
  }

  /** Raises the value after a failure, which is not a sample of the path's speed. */
  punish(ms: number, nowMs: number): void {
    this.#take(Math.max(ms, this.#ms ?? 0), nowMs, false);
  }

  /** 95th percentile of the last samples; undefined while there are too few. */
  p95(): number | undefined {
    if (this.#count < 16) return undefined;
    if (this.#p95 === undefined || this.#count - this.#p95.count >= 8) {
      const sorted = this.#window.toSorted((a, b) => a - b);
      this.#p95 = { ms: sorted[Math.floor(sorted.length * 0.95)]!, count: this.#count };
    }
    return this.#p95.ms;
  }

  /** A quantile of the last samples, for people; undefined before the first one. */
  quantile(share: number): number | undefined {
    const sorted = this.#window.toSorted((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  }

  #take(ms: number, nowMs: number, isFirst: boolean): void {
    if (this.#ms === undefined || isFirst || ms > this.#ms) {
      this.#ms = ms;
    } else {
      const old = Math.exp(-(nowMs - this.#atMs) / decayMs);
      this.#ms = this.#ms * old + ms * (1 - old);
    }
    this.#atMs = nowMs;
  }
}
