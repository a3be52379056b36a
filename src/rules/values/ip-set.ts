import type { IpValue } from "./types.ts";

export interface IpRange {
  first: IpValue;
  last: IpValue;
}

/**
 * Addresses and ranges of both families. Ranges are sorted and merged. A table by first byte narrows the
 * search, so that most lookups need one or two comparisons.
 */
export class IpSet {
  readonly of = "Ip";
  readonly #v4First: Int32Array;
  readonly #v4Last: Int32Array;
  readonly #v4Start: Uint32Array;
  readonly #v6First: readonly string[];
  readonly #v6Last: readonly string[];
  readonly #v6Start: Uint32Array;

  constructor(ranges: readonly IpRange[]) {
    const v4 = merge(ranges.filter(isV4), (last) => last + 1);
    this.#v4First = Int32Array.from(v4, ({ first }) => signed(first));
    this.#v4Last = Int32Array.from(v4, ({ last }) => signed(last));
    this.#v4Start = startTable(v4, (ip) => ip >>> 24);
    const v6 = merge(ranges.filter(isV6), (last) => last);
    this.#v6First = v6.map(({ first }) => first);
    this.#v6Last = v6.map(({ last }) => last);
    this.#v6Start = startTable(v6, (ip) => ip.charCodeAt(0));
  }

  has(ip: IpValue): boolean {
    return typeof ip === "number" ? this.#hasV4(ip) : this.#hasV6(ip);
  }

  #hasV4(ip: number): boolean {
    const key = signed(ip);
    const byte = ip >>> 24;
    const first = this.#v4First;
    let low = this.#v4Start[byte]!;
    let high = this.#v4Start[byte + 1]!;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (first[middle]! <= key) low = middle + 1;
      else high = middle;
    }
    return low > 0 && key <= this.#v4Last[low - 1]!;
  }

  #hasV6(ip: string): boolean {
    const byte = ip.charCodeAt(0);
    let low = this.#v6Start[byte]!;
    let high = this.#v6Start[byte + 1]!;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#v6First[middle]! <= ip) low = middle + 1;
      else high = middle;
    }
    return low > 0 && ip <= this.#v6Last[low - 1]!;
  }
}

interface Range<T> {
  first: T;
  last: T;
}

function isV4(range: IpRange): range is Range<number> {
  return typeof range.first === "number";
}

function isV6(range: IpRange): range is Range<string> {
  return typeof range.first === "string";
}

/** Maps an unsigned 32-bit number to a signed one in the same order, because V8 compares these fastest. */
function signed(ip: number): number {
  return ip ^ 0x8000_0000;
}

/** Joins ranges that overlap, or that touch according to `next`. */
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

/** For each first byte, the number of ranges that begin with a lower byte. */
function startTable<T>(ranges: readonly Range<T>[], byteOf: (ip: T) => number): Uint32Array {
  const table = new Uint32Array(257);
  for (const { first } of ranges) table[byteOf(first) + 1]!++;
  for (let byte = 1; byte <= 256; byte++) table[byte]! += table[byte - 1]!;
  return table;
}
