import { PatternError, type Pattern } from "./syntax.ts";

/** Limit on a pattern's automaton states, with counted repetitions expanded. */
export const stateCountMax = 16_384;
const stateBytes = 64;

/** Throws if a pattern is too large to run on every request. */
export function checkPatternSize(pattern: Pattern): void {
  if (sizeOf(pattern) > stateCountMax) throw refuseSize();
}

export function refuseSize(): PatternError {
  return new PatternError(`Compiled regex exceeds size limit of ${stateCountMax * stateBytes} bytes.`);
}

/** The approximate number of automaton states. */
export function sizeOf(pattern: Pattern): number {
  switch (pattern.kind) {
    case "empty":
      return 0;
    case "bytes":
    case "assert":
      return 1;
    case "concat":
    case "alternate":
      return pattern.items.reduce((size, item) => size + sizeOf(item), pattern.kind === "alternate" ? 1 : 0);
    case "repeat": {
      const copies = pattern.max === Infinity ? Math.max(pattern.min, 1) : pattern.max;
      return copies * (sizeOf(pattern.item) + 1);
    }
    case "group":
      return sizeOf(pattern.item);
  }
}
