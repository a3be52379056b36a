import { negate, type RangeSet } from "./automaton/range-set.ts";
import type { Pattern } from "./syntax.ts";

/**
 * The source text of a pattern with the same meaning, without flags, in JavaScript's RegExp and in RE2, both
 * on latin1 strings.
 */
export function printPattern(pattern: Pattern): string {
  return print(pattern, 0);
}

/** `level` is the context: 0 none, 1 a sequence, 2 a repetition. */
function print(pattern: Pattern, level: 0 | 1 | 2): string {
  switch (pattern.kind) {
    case "empty":
      return "(?:)";
    case "bytes":
      return printSet(pattern.set);
    case "assert":
      return level === 2 ? `(?:${assertions[pattern.assertion]})` : assertions[pattern.assertion];
    case "concat":
      return wrap(pattern.items.map((item) => print(item, 1)).join(""), level === 2);
    case "alternate":
      return wrap(pattern.items.map((item) => print(item, 0)).join("|"), level > 0);
    case "group":
      return `(${print(pattern.item, 0)})`;
    case "repeat": {
      const { min, max, greedy, item } = pattern;
      return wrap(`${print(item, 2)}${printCounts(min, max)}${greedy ? "" : "?"}`, level === 2);
    }
  }
}

const assertions = {
  start: "^",
  end: "$",
  // RE2 only: JavaScript's `m` also stops at CR, U+2028 and U+2029.
  "line-start": "(?m:^)",
  "line-end": "(?m:$)",
  word: "\\b",
  "not-word": "\\B",
} as const;

function wrap(source: string, needed: boolean): string {
  return needed ? `(?:${source})` : source;
}

function printCounts(min: number, max: number): string {
  if (min === 0 && max === Infinity) return "*";
  if (min === 1 && max === Infinity) return "+";
  if (min === 0 && max === 1) return "?";
  return max === Infinity ? `{${min},}` : min === max ? `{${min}}` : `{${min},${max}}`;
}

function printSet(set: RangeSet): string {
  const [only] = set;
  if (only !== undefined && set.length === 1 && only[0] === only[1]) return printByte(only[0]);
  // The engines share no syntax for an empty class, so it is written as the complement of all bytes.
  if (set.length === 0) return "[^\\x00-\\xff]";
  const inverse = negate(set, 0xff);
  const shorter = inverse.length > 0 && inverse.length < set.length ? inverse : undefined;
  const ranges = (shorter ?? set)
    .map(([first, last]) => (first === last ? printByte(first) : `${printByte(first)}-${printByte(last)}`))
    .join("");
  return `[${shorter === undefined ? "" : "^"}${ranges}]`;
}

function printByte(byte: number): string {
  const char = String.fromCharCode(byte);
  return /^[A-Za-z0-9_]$/.test(char) ? char : `\\x${byte.toString(16).padStart(2, "0")}`;
}
