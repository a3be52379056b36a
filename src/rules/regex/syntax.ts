import type { RangeSet } from "./range-set.ts";

export type Assertion = "start" | "end" | "line-start" | "line-end" | "word" | "not-word";

/** A pattern over bytes: classes are sets of bytes, Unicode is already spelt out as UTF-8. */
export type Pattern =
  | { kind: "empty" }
  | { kind: "bytes"; set: RangeSet }
  | { kind: "assert"; assertion: Assertion }
  | { kind: "concat"; items: Pattern[] }
  | { kind: "alternate"; items: Pattern[] }
  | { kind: "repeat"; item: Pattern; min: number; max: number; greedy: boolean }
  | { kind: "group"; item: Pattern; index: number };

export const empty: Pattern = { kind: "empty" };

export function concat(items: Pattern[]): Pattern {
  const flat = items.flatMap((item) =>
    item.kind === "concat" ? item.items : item.kind === "empty" ? [] : [item],
  );
  return flat.length === 0 ? empty : flat.length === 1 ? flat[0]! : { kind: "concat", items: flat };
}

export function alternate(items: Pattern[]): Pattern {
  return items.length === 1 ? items[0]! : { kind: "alternate", items };
}

/** A pattern that the language refuses, and where; `end` is after the last character at fault. */
export class PatternError extends Error {
  constructor(pattern: string, reason: string, start: number, end: number) {
    const carets = `${" ".repeat(start)}${"^".repeat(Math.max(1, end - start))}`;
    super(`regex parse error:\n    ${pattern}\n    ${carets}\nerror: ${reason}`);
  }
}
