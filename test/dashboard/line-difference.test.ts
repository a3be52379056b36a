import { expect, it } from "vitest";
import { changesBetween, type Change } from "../../dashboard/core/line-difference.ts";

/** Numbers from a seed, so that a failure comes again. */
function* numbers(seed: number): Generator<number, never> {
  for (let state = seed; ; yield state >>> 8) state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
}

/** The text after the changes, made from the text before. */
const changed = (before: string[], after: string[], changes: readonly Change[]): string[] =>
  changes.toReversed().reduce((lines, change) => {
    const added = after.slice(change.after, change.afterEnd);
    return [...lines.slice(0, change.before), ...added, ...lines.slice(change.beforeEnd)];
  }, before);

/** The length of the longest common subsequence, by the whole table. */
function commonLength(before: string[], after: string[]): number {
  let row = after.map(() => 0);
  for (const line of before) {
    const above = row;
    row = [];
    for (const [i, other] of after.entries())
      row.push(line === other ? (above[i - 1] ?? 0) + 1 : Math.max(above[i]!, row[i - 1] ?? 0));
  }
  return row.at(-1) ?? 0;
}

it("46: finds the fewest changes between two texts", () => {
  const next = numbers(46);
  const random = (below: number): number => next.next().value % below;
  for (let round = 0; round < 2000; round++) {
    const letters = 1 + random(6);
    const lines = (): string[] =>
      Array.from({ length: random(14) }, () => String.fromCharCode(97 + random(letters)));
    const [before, after] = [lines(), lines()];
    const changes = changesBetween(before, after)!;
    expect(changed(before, after, changes)).toEqual(after);
    const removed = changes.reduce((sum, change) => sum + change.beforeEnd - change.before, 0);
    expect(before.length - removed, `${before.join("")} ${after.join("")}`).toBe(commonLength(before, after));
  }
});

it("46: compares large texts that differ in few lines, and gives up on those that differ everywhere", () => {
  const before = Array.from({ length: 200_000 }, (_, i) => `line ${i % 5000}`);
  const after = before.with(10, "other").toSpliced(150_000, 2, "new");
  expect(changesBetween(before, after)).toEqual([
    { before: 10, beforeEnd: 11, after: 10, afterEnd: 11 },
    { before: 150_000, beforeEnd: 150_002, after: 150_000, afterEnd: 150_001 },
  ]);
  // No line is in both: there is nothing to search.
  const others = before.map((line) => `not ${line}`);
  expect(changesBetween(before, others)).toEqual([
    { before: 0, beforeEnd: before.length, after: 0, afterEnd: others.length },
  ]);
  expect(changesBetween(before, before.toReversed())).toBeUndefined();
});
