import { unicodeCasePairs } from "./classes.ts";
import { normalize, type RangeSet } from "./automaton/range-set.ts";

/** Adds the other case of every letter that has one. */
export function foldUnicode(set: RangeSet): RangeSet {
  const more: [number, number][] = [];
  let i = 0;
  for (const [point, other] of unicodeCasePairs()) {
    while (i < set.length && set[i]![1] < point) i++;
    if (i === set.length) break;
    if (set[i]![0] <= point) more.push([other, other]);
  }
  return more.length === 0 ? set : normalize([...set, ...more]);
}
