/** Random choices, reproducible by their seed. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** An integer from 0 to `limit` - 1. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b_79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  }

  chance(ofHundred: number): boolean {
    return this.below(100) < ofHundred;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }

  hex(bytes: number): string {
    return Buffer.from(Array.from({ length: bytes }, () => this.below(256))).toString("hex");
  }
}
