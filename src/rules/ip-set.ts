import type { IpValue } from "./types.ts";

export interface IpRange {
  first: IpValue;
  last: IpValue;
}

/** Addresses and ranges of both families; ranges are sorted and merged, so a lookup is one binary search. */
export class IpSet {
  readonly of = "Ip";
  readonly #v4First: Float64Array;
  readonly #v4Last: Float64Array;
  readonly #v6First: string[] = [];
  readonly #v6Last: string[] = [];

  constructor(ranges: readonly IpRange[]) {
    const v4 = merge(
      ranges.filter((range): range is Range<number> => typeof range.first === "number"),
      (last) => last + 1,
    );
    this.#v4First = Float64Array.from(v4, (range) => range.first);
    this.#v4Last = Float64Array.from(v4, (range) => range.last);
    for (const range of merge(
      ranges.filter((range): range is Range<string> => typeof range.first === "string"),
      (last) => last,
    )) {
      this.#v6First.push(range.first);
      this.#v6Last.push(range.last);
    }
  }

  has(ip: IpValue): boolean {
    if (typeof ip === "number") return within(this.#v4First, this.#v4Last, ip);
    return within(this.#v6First, this.#v6Last, ip);
  }
}

interface Range<T> {
  first: T;
  last: T;
}

/** Joins ranges that overlap, or that touch where `next` can tell. */
function merge<T extends IpValue>(ranges: Range<T>[], next: (last: T) => T): Range<T>[] {
  const merged: Range<T>[] = [];
  for (const range of ranges.toSorted((a, b) => (a.first < b.first ? -1 : 1))) {
    const previous = merged.at(-1);
    if (previous !== undefined && range.first <= next(previous.last)) {
      if (range.last > previous.last) previous.last = range.last;
    } else {
      merged.push({ first: range.first, last: range.last });
    }
  }
  return merged;
}

function within<T extends IpValue>(first: ArrayLike<T>, last: ArrayLike<T>, value: T): boolean {
  let low = 0;
  let high = first.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (first[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low > 0 && value <= last[low - 1]!;
}
