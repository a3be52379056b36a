import type { PatternReader } from "./reader.ts";

export interface Repeat {
  min: number;
  /** `Infinity` if there is no limit. */
  max: number;
  greedy: boolean;
}

const countMax = 0xffff_ffff;

/** Reads `*`, `+`, `?` or `{n,m}`, and the `?` of a lazy one; undefined if none comes next. */
export function readRepeat(reader: PatternReader): Repeat | undefined {
  const counts = readCounts(reader);
  if (counts === undefined) return undefined;
  const lazy = reader.take("?");
  return { ...counts, greedy: lazy === reader.flags.swapGreed };
}

function readCounts(reader: PatternReader): { min: number; max: number } | undefined {
  if (reader.take("*")) return { min: 0, max: Infinity };
  if (reader.take("+")) return { min: 1, max: Infinity };
  if (reader.take("?")) return { min: 0, max: 1 };
  const start = reader.pos;
  if (!reader.take("{")) return undefined;
  const body = reader.takeUntil("}");
  if (body === undefined) {
    reader.pos = reader.chars.length;
    throw reader.fault("unclosed counted repetition", start, start + 1);
  }
  const match = /^(?:(\d+)|(\d*),(\d*))$/.exec(
    body
      .split(",")
      .map((part) => part.replace(/^ +|(?<! ) +$/g, ""))
      .join(","),
  );
  if (match === null || match[0] === ",") {
    throw reader.fault("repetition quantifier expects a valid decimal", start);
  }
  const min = Number(match[1] ?? (match[2] === "" ? 0 : match[2]));
  const max = match[1] !== undefined ? min : match[3] === "" ? Infinity : Number(match[3]);
  if (min > countMax || (max > countMax && max !== Infinity))
    throw reader.fault("decimal literal invalid", start);
  if (min > max) {
    throw reader.fault("invalid repetition count range, the start must be <= the end", start);
  }
  return { min, max };
}
