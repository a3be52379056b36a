import { intersect, union, type RangeSet } from "./automaton/range-set.ts";
import { sizeOf } from "./size.ts";
import type { Pattern } from "./syntax.ts";

/**
 * Whether a backtracking matcher provably needs time linear in the text, with a small factor.
 *
 * For each part, the analysis computes the number of ways to match from one position (`ways`) and the steps
 * to try them all (`steps`, at most `constant + linear × length`). A loop has one way if the text after it
 * cannot begin with its item, because backtracking then fails at once. Patterns without this proof run on the
 * automaton.
 */
export function isLinearForBacktracking(pattern: Pattern): boolean {
  if (sizeOf(pattern) > nativeSizeMax || usesLines(pattern)) return false;
  const { steps } = analyze(pattern, none);
  return isAnchored(pattern)
    ? steps.linear <= factorMax && steps.constant <= factorMax * 8
    : steps.linear === 0 && steps.constant <= factorMax;
}

const nativeSizeMax = 1000;
const factorMax = 200;

interface Steps {
  constant: number;
  linear: number;
}
interface Analysis {
  ways: number;
  steps: Steps;
}

const none: RangeSet = [];

/** Whether the pattern can match the empty text. */
export const canBeEmpty = (pattern: Pattern): boolean => firstOf(pattern).nullable;

/**
 * `follow` has the bytes that may come next. Reaching the end of the pattern succeeds, and success never
 * backtracks.
 */
function analyze(pattern: Pattern, follow: RangeSet): Analysis {
  switch (pattern.kind) {
    case "empty":
      return { ways: 1, steps: { constant: 0, linear: 0 } };
    case "bytes":
    case "assert":
      return { ways: 1, steps: { constant: 1, linear: 0 } };
    case "group":
      return analyze(pattern.item, follow);
    case "concat":
      return analyzeSequence(pattern.items, follow);
    case "alternate":
      return analyzeBranches(pattern.items, follow);
    case "repeat":
      return analyzeRepeat(pattern, follow);
  }
}

function analyzeSequence(items: readonly Pattern[], follow: RangeSet): Analysis {
  let result: Analysis = { ways: 1, steps: { constant: 0, linear: 0 } };
  let next = follow;
  for (const item of items.toReversed()) {
    const head = analyze(item, next);
    result = {
      ways: head.ways * result.ways,
      steps: add(head.steps, times(result.steps, head.ways)),
    };
    const first = firstOf(item);
    next = first.nullable ? union(first.set, next) : first.set;
  }
  return result;
}

function analyzeBranches(items: readonly Pattern[], follow: RangeSet): Analysis {
  let seen: RangeSet = none;
  let exclusive = true;
  let ways = 0;
  let most = 0;
  let steps: Steps = { constant: 1, linear: 0 };
  for (const item of items) {
    const branch = analyze(item, follow);
    const first = firstOf(item);
    if (first.nullable || intersect(first.set, seen).length > 0) exclusive = false;
    seen = union(seen, first.set);
    ways += branch.ways;
    most = Math.max(most, branch.ways);
    steps = add(steps, branch.steps);
  }
  return { ways: exclusive ? most : ways, steps };
}

function analyzeRepeat(repeat: Pattern & { kind: "repeat" }, follow: RangeSet): Analysis {
  const { item, min, max } = repeat;
  const first = firstOf(item);
  const body = analyze(item, max > 1 ? union(first.set, follow) : follow);
  const exits = intersect(first.set, follow).length === 0 && !first.nullable;
  if (max === Infinity) {
    // A loop around an item with alternatives, or with overlapping loops, runs on the automaton.
    if (!exits || body.ways !== 1 || body.steps.linear > 0) {
      const single = item.kind === "bytes" && follow.length > 0;
      if (single) return { ways: Infinity, steps: { constant: min + 1, linear: 1 } };
      if (body.ways === 1 && !first.nullable && exits)
        return { ways: 1, steps: { constant: 1, linear: factorOf(body.steps) } };
      return { ways: Infinity, steps: { constant: Infinity, linear: Infinity } };
    }
    return { ways: 1, steps: { constant: body.steps.constant + 1, linear: body.steps.constant } };
  }
  if (exits && body.ways === 1) return { ways: 1, steps: times(body.steps, max) };
  let ways = 0;
  for (let count = min; count <= max && ways < 1e6; count++) ways += body.ways ** count;
  let total = 0;
  for (let count = 0; count < max && total < 1e6; count++) total += body.ways ** count;
  return { ways, steps: times(body.steps, total) };
}

/** Nested loops that never overlap read each character a bounded number of times. */
function factorOf(steps: Steps): number {
  return steps.linear + steps.constant;
}

function add(a: Steps, b: Steps): Steps {
  return { constant: a.constant + b.constant, linear: a.linear + b.linear };
}

function times(steps: Steps, count: number): Steps {
  if (count === Infinity) {
    // There are as many attempts as characters. Constant steps for each are linear; more are not.
    return { constant: 0, linear: steps.linear > 0 ? Infinity : steps.constant };
  }
  return { constant: steps.constant * count, linear: steps.linear === 0 ? 0 : steps.linear * count };
}

interface First {
  set: RangeSet;
  nullable: boolean;
}

function firstOf(pattern: Pattern): First {
  switch (pattern.kind) {
    case "empty":
    case "assert":
      return { set: none, nullable: true };
    case "bytes":
      return { set: pattern.set, nullable: false };
    case "group":
      return firstOf(pattern.item);
    case "repeat": {
      const first = firstOf(pattern.item);
      return pattern.max === 0
        ? { set: none, nullable: true }
        : { set: first.set, nullable: first.nullable || pattern.min === 0 };
    }
    case "alternate": {
      const firsts = pattern.items.map(firstOf);
      return {
        set: firsts.map(({ set }) => set).reduce(union, none),
        nullable: firsts.some(({ nullable }) => nullable),
      };
    }
    case "concat": {
      let set = none;
      for (const item of pattern.items) {
        const first = firstOf(item);
        set = union(set, first.set);
        if (!first.nullable) return { set, nullable: false };
      }
      return { set, nullable: true };
    }
  }
}

function isAnchored(pattern: Pattern): boolean {
  if (pattern.kind === "assert") return pattern.assertion === "start";
  if (pattern.kind === "group") return isAnchored(pattern.item);
  if (pattern.kind === "alternate") return pattern.items.every(isAnchored);
  return pattern.kind === "concat" && isAnchored(pattern.items[0]!);
}

function usesLines(pattern: Pattern): boolean {
  switch (pattern.kind) {
    case "assert":
      return pattern.assertion === "line-start" || pattern.assertion === "line-end";
    case "concat":
    case "alternate":
      return pattern.items.some(usesLines);
    case "repeat":
    case "group":
      return usesLines(pattern.item);
    case "empty":
    case "bytes":
      return false;
  }
}
