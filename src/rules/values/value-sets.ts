import type { IntValue } from "./types.ts";

/** The strings of `in {…}`. */
export class BytesSet {
  readonly of = "Bytes";
  readonly values: ReadonlySet<string>;

  constructor(values: Iterable<string>) {
    this.values = new Set(values);
  }

  has(value: string): boolean {
    return this.values.has(value);
  }
}

export interface IntRange {
  first: IntValue;
  last: IntValue;
}

/** The integers and integer ranges of `in {…}`, sorted and merged. */
export class IntSet {
  readonly of = "Int";
  readonly ranges: readonly IntRange[];

  constructor(ranges: readonly IntRange[]) {
    const merged: IntRange[] = [];
    for (const range of ranges.toSorted((a, b) => (a.first < b.first ? -1 : 1))) {
      const previous = merged.at(-1);
      if (previous !== undefined && range.first <= previous.last) {
        if (range.last > previous.last) previous.last = range.last;
      } else {
        merged.push({ first: range.first, last: range.last });
      }
    }
    this.ranges = merged;
  }

  has(value: IntValue): boolean {
    let low = 0;
    let high = this.ranges.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.ranges[middle]!.first <= value) low = middle + 1;
      else high = middle;
    }
    return low > 0 && value <= this.ranges[low - 1]!.last;
  }
}
