import type { RangeSet } from "./range-set.ts";
import type { Assertion, Pattern } from "../syntax.ts";

/** A state of a Thompson automaton. `out` and `alt` are state numbers; -1 means none. */
export type State =
  | { kind: "bytes"; set: RangeSet; out: number }
  | { kind: "split"; out: number; alt: number }
  | { kind: "assert"; assertion: Assertion; out: number }
  | { kind: "match" };

export interface Nfa {
  states: readonly State[];
  start: number;
}

/** Builds the automaton from the end backwards, so that each part knows its next state. */
export function buildNfa(pattern: Pattern): Nfa {
  const states: State[] = [{ kind: "match" }];
  const push = (state: State): number => states.push(state) - 1;

  const build = (node: Pattern, next: number): number => {
    switch (node.kind) {
      case "empty":
        return next;
      case "bytes":
        return push({ kind: "bytes", set: node.set, out: next });
      case "assert":
        return push({ kind: "assert", assertion: node.assertion, out: next });
      case "group":
        return build(node.item, next);
      case "concat":
        return node.items.reduceRight((after, item) => build(item, after), next);
      case "alternate":
        return node.items
          .map((item) => build(item, next))
          .reduceRight((alt, out) => push({ kind: "split", out, alt }));
      case "repeat":
        return buildRepeat(node, next);
    }
  };

  const buildRepeat = (node: Pattern & { kind: "repeat" }, next: number): number => {
    let after = next;
    if (node.max === Infinity) {
      const loop = { kind: "split" as const, out: -1, alt: next };
      after = push(loop);
      loop.out = build(node.item, after);
    } else {
      for (let i = node.min; i < node.max; i++)
        after = push({ kind: "split", out: build(node.item, after), alt: next });
    }
    for (let i = 0; i < node.min; i++) after = build(node.item, after);
    return after;
  };

  return { start: build(pattern, 0), states };
}
