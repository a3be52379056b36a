import { canBeEmpty } from "../cost.ts";
import type { Pattern } from "../syntax.ts";

/**
 * Whether V8 finds the same match and groups as RE2 and Rust. They differ in repetitions: if an iteration
 * matches the empty text, V8 tries alternatives, while the others take the first match. V8 also clears the
 * groups of earlier iterations.
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
