import type { Pattern } from "./syntax.ts";

/** The longest run of bytes that every match holds, or "" when none is plain to see. */
export function requiredBytes(pattern: Pattern): string {
  const runs = [""];
  collect(pattern, runs);
  return runs.reduce((longest, run) => (run.length > longest.length ? run : longest));
}

/** Adds to the last run what comes next for certain; a new run begins where it is not certain. */
function collect(pattern: Pattern, runs: string[]): void {
  switch (pattern.kind) {
    case "empty":
    case "assert":
      return;
    case "bytes": {
      const [only] = pattern.set;
      if (pattern.set.length === 1 && only![0] === only![1])
        runs[runs.length - 1] += String.fromCharCode(only![0]);
      else runs.push("");
      return;
    }
    case "group":
      collect(pattern.item, runs);
      return;
    case "concat":
      for (const item of pattern.items) collect(item, runs);
      return;
    case "repeat":
      // The first turn is certain, but what follows it may be another one.
      if (pattern.min > 0) collect(pattern.item, runs);
      runs.push("");
      return;
    case "alternate":
      runs.push("");
  }
}
