import type { Pattern } from "./syntax.ts";

/** As large as a pattern may be when its counted repetitions are written out, in automaton states. */
export const stateCountMax = 16_384;
const stateBytes = 64;

/** Refuses a pattern too large to run quickly on every request. */
export function checkPatternSize(pattern: Pattern): void {
  if (sizeOf(pattern) > stateCountMax) throw refuseSize();
}

export function refuseSize(): Error {
  return new Error(`Compiled regex exceeds size limit of ${stateCountMax * stateBytes} bytes.`);
}

/** States of the automaton, about. */
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
