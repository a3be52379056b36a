import type { RangeSet } from "./automaton/range-set.ts";

export type Assertion = "start" | "end" | "line-start" | "line-end" | "word" | "not-word";

/** A pattern over bytes. Classes are sets of bytes, and Unicode is already expanded to UTF-8. */
export type Pattern =
  | { kind: "empty" }
  | { kind: "bytes"; set: RangeSet }
  | { kind: "assert"; assertion: Assertion }
  | { kind: "concat"; items: Pattern[] }
  | { kind: "alternate"; items: Pattern[] }
  | { kind: "repeat"; item: Pattern; min: number; max: number; greedy: boolean }
  | { kind: "group"; item: Pattern; index: number };

export const empty: Pattern = { kind: "empty" };

/** A sequence of patterns, without nested sequences and empty patterns. */
export function concat(items: Pattern[]): Pattern {
  const flat = items.flatMap((item) =>
    item.kind === "concat" ? item.items : item.kind === "empty" ? [] : [item],
  );
  return flat.length === 0 ? empty : flat.length === 1 ? flat[0]! : { kind: "concat", items: flat };
}

export function alternate(items: Pattern[]): Pattern {
  return items.length === 1 ? items[0]! : { kind: "alternate", items };
}

/** A pattern that the language rejects. The message is for the author of the expression. */
export class PatternError extends Error {}

/** A syntax error in a pattern. `end` is after the last wrong character. */
export class PatternSyntaxError extends PatternError {
  constructor(pattern: string, reason: string, start: number, end: number) {
    const carets = `${" ".repeat(start)}${"^".repeat(Math.max(1, end - start))}`;
    super(`regex parse error:\n    ${pattern}\n    ${carets}\nerror: ${reason}`);
  }
}
