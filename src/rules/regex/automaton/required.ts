import type { Pattern } from "../syntax.ts";

/** The longest run of bytes that every match contains, or "" if none is found. */
export function requiredBytes(pattern: Pattern): string {
  const runs = [""];
  collect(pattern, runs);
  return runs.reduce((longest, run) => (run.length > longest.length ? run : longest));
}

/** Appends required bytes to the last run, and begins a new run after optional parts. */
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
      // The first iteration is required, but another iteration may follow it.
      if (pattern.min > 0) collect(pattern.item, runs);
      runs.push("");
      return;
    case "alternate":
      runs.push("");
  }
}
