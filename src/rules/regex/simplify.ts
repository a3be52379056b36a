import { alternate, concat, empty, type Pattern } from "./syntax.ts";

/**
 * A simpler pattern that matches somewhere in exactly the same texts, for yes-or-no tests: without captures,
 * and without optional parts at either end.
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

/** At the edge of a search, the minimum count of a repetition is enough. */
function fewest(pattern: Pattern): Pattern {
  if (pattern.kind !== "repeat") return pattern;
  if (pattern.min === 0) return empty;
  return pattern.min === 1 ? pattern.item : { ...pattern, max: pattern.min };
}
