import { canBeEmpty } from "./cost.ts";
import type { Pattern } from "./syntax.ts";

/**
 * Whether V8 finds the match, and the groups, that RE2 and Rust find. Where a further turn of a repetition matches nothing, V8 goes on
 * to try the other ways, and theirs is the match that comes first; and V8 forgets a turn's groups with the next.
 */
export function hasSameMatchNatively(pattern: Pattern): boolean {
  switch (pattern.kind) {
    case "empty":
    case "bytes":
    case "assert":
      return true;
    case "group":
      return hasSameMatchNatively(pattern.item);
    case "concat":
    case "alternate":
      return pattern.items.every(hasSameMatchNatively);
    case "repeat": {
      const { item, min, max } = pattern;
      if (min < max && canBeEmpty(item)) return false;
      return max > 1 && hasGroup(item) ? false : hasSameMatchNatively(item);
    }
  }
}

function hasGroup(pattern: Pattern): boolean {
  switch (pattern.kind) {
    case "group":
      return true;
    case "concat":
    case "alternate":
      return pattern.items.some(hasGroup);
    case "repeat":
      return hasGroup(pattern.item);
    case "empty":
    case "bytes":
    case "assert":
      return false;
  }
}
