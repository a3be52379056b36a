/** Sorted, disjoint, inclusive ranges of numbers: bytes, or code points. */
export type RangeSet = readonly (readonly [first: number, last: number])[];

export const byteMax = 0xff;
export const codePointMax = 0x10_ffff;

/** Sorts ranges, and merges those that overlap or touch. */
export function normalize(ranges: readonly (readonly [number, number])[]): RangeSet {
  const merged: [number, number][] = [];
  for (const [first, last] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const previous = merged.at(-1);
    if (previous !== undefined && first <= previous[1] + 1) previous[1] = Math.max(previous[1], last);
    else merged.push([first, last]);
  }
  return merged;
}

/** The numbers from 0 to `max` that are not in the set. */
export function negate(set: RangeSet, max: number): RangeSet {
  const ranges: [number, number][] = [];
  let next = 0;
  for (const [first, last] of set) {
    if (first > next) ranges.push([next, first - 1]);
    next = last + 1;
  }
  if (next <= max) ranges.push([next, max]);
  return ranges;
}

export function union(a: RangeSet, b: RangeSet): RangeSet {
  return normalize([...a, ...b]);
}

export function intersect(a: RangeSet, b: RangeSet): RangeSet {
  const ranges: [number, number][] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    const first = Math.max(a[i]![0], b[j]![0]);
    const last = Math.min(a[i]![1], b[j]![1]);
    if (first <= last) ranges.push([first, last]);
    if (a[i]![1] < b[j]![1]) i++;
    else j++;
  }
  return ranges;
}

/** The numbers of `a` that are not in `b`. */
export function subtract(a: RangeSet, b: RangeSet): RangeSet {
  return intersect(a, negate(b, codePointMax));
}

export function includes(set: RangeSet, value: number): boolean {
  return set.some(([first, last]) => first <= value && value <= last);
}

/** Adds the other case of ASCII letters. */
export function foldAscii(set: RangeSet): RangeSet {
  const lower = intersect(set, [[0x61, 0x7a]]).map(([a, b]) => [a - 32, b - 32] as const);
  const upper = intersect(set, [[0x41, 0x5a]]).map(([a, b]) => [a + 32, b + 32] as const);
  return normalize([...set, ...lower, ...upper]);
}
