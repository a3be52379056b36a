import { alternate, concat, empty, type Pattern } from "./syntax.ts";

/**
 * A pattern that matches somewhere in exactly the same texts, where only yes or no is asked:
 * without captures, and without the optional parts at either end, which a search never needs.
 */
export function simplifyForTest(pattern: Pattern): Pattern {
  return trimEnd(trimStart(withoutGroups(pattern)));
}

function withoutGroups(pattern: Pattern): Pattern {
  switch (pattern.kind) {
    case "group":
      return withoutGroups(pattern.item);
    case "repeat":
      return pattern.max === 0 ? empty : { ...pattern, item: withoutGroups(pattern.item) };
    case "concat":
      return concat(pattern.items.map(withoutGroups));
    case "alternate":
      return alternate(pattern.items.map(withoutGroups));
    case "empty":
    case "bytes":
    case "assert":
      return pattern;
  }
}

function trimStart(pattern: Pattern): Pattern {
  if (pattern.kind === "alternate") return alternate(pattern.items.map(trimStart));
  if (pattern.kind !== "concat") return fewest(pattern);
  for (const [i, item] of pattern.items.entries()) {
    const head = trimStart(item);
    if (head.kind !== "empty") return concat([head, ...pattern.items.slice(i + 1)]);
  }
  return empty;
}

function trimEnd(pattern: Pattern): Pattern {
  if (pattern.kind === "alternate") return alternate(pattern.items.map(trimEnd));
  if (pattern.kind !== "concat") return fewest(pattern);
  for (let i = pattern.items.length - 1; i >= 0; i--) {
    const tail = trimEnd(pattern.items[i]!);
    if (tail.kind !== "empty") return concat([...pattern.items.slice(0, i), tail]);
  }
  return empty;
}

/** A repetition at the edge of a search is satisfied by its fewest turns. */
function fewest(pattern: Pattern): Pattern {
  if (pattern.kind !== "repeat") return pattern;
  if (pattern.min === 0) return empty;
  return pattern.min === 1 ? pattern.item : { ...pattern, max: pattern.min };
}
