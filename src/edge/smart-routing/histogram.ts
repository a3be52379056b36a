/** Upper bounds of the buckets for times to first byte in milliseconds; larger times are counted too. */
export const boundsMs: readonly number[] = [
  1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 60, 80, 100, 125, 150, 200, 250, 300, 400, 500, 750, 1000, 1500,
  2000, 3000, 5000, 10_000,
];

export class Histogram {
  readonly counts: number[] = Array.from({ length: boundsMs.length + 1 }, () => 0);
  count = 0;
  sumMs = 0;

  add(ms: number): void {
    let [low, high] = [0, boundsMs.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (boundsMs[middle]! < ms) low = middle + 1;
      else high = middle;
    }
    this.counts[low]! += 1;
    this.count += 1;
    this.sumMs += ms;
  }

  merge(other: Histogram): this {
    other.counts.forEach((count, index) => (this.counts[index]! += count));
    this.count += other.count;
    this.sumMs += other.sumMs;
    return this;
  }

  /** Interpolated within a bucket; undefined for an empty histogram. */
  quantile(share: number): number | undefined {
    if (this.count === 0) return undefined;
    let wanted = share * this.count;
    for (const [index, count] of this.counts.entries()) {
      if (wanted <= count && count > 0) {
        const from = boundsMs[index - 1] ?? 0;
        const to = boundsMs[index] ?? boundsMs.at(-1)! * 2;
        return from + ((to - from) * wanted) / count;
      }
      wanted -= count;
    }
    return boundsMs.at(-1)! * 2;
  }

  get meanMs(): number | undefined {
    return this.count === 0 ? undefined : this.sumMs / this.count;
  }
}
