import { originalPositionFor, TraceMap, type EncodedSourceMap } from "@jridgewell/trace-mapping";
import { parseBounded } from "../../platform/util/bounded-json.ts";
import type { SourcePosition } from "./frames.ts";

/** A decoded segment takes about 80 bytes. A bundle of 1 MB has about a third of a million. */
export const segmentsMax = 1_000_000;
const sourcesMax = 100_000;
const fileLengthMax = 1024;

/** A parsed source map with its number of segments. */
export interface ReadMap {
  map: TraceMap;
  segments: number;
}

/** Parses a source map of version 3, which is untrusted input. Returns undefined if it is invalid or too large. */
export function readSourceMap(text: string): ReadMap | undefined {
  try {
    // In a valid map only "mappings" is long, and it is a single string.
    const given = parseBounded(text, sourcesMax) as Record<string, unknown> | null;
    const { version, mappings, sources, sourceRoot } = given ?? {};
    if (version !== 3 || typeof mappings !== "string" || !isListOfText(sources)) return undefined;
    const segments = countSegments(mappings);
    if (segments > segmentsMax) return undefined;
    const root = typeof sourceRoot === "string" ? { sourceRoot } : {};
    const map: EncodedSourceMap = { version: 3, mappings, sources: [...sources], names: [], ...root };
    return { map: new TraceMap(map), segments };
  } catch {
    return undefined;
  }
}

const isListOfText = (value: unknown): value is (string | null)[] =>
  Array.isArray(value) && value.every((each) => each === null || typeof each === "string");

function countSegments(mappings: string): number {
  let count = 1;
  for (let at = 0; at < mappings.length; at++) {
    const code = mappings.charCodeAt(at);
    if (code === 0x2c || code === 0x3b) count++;
  }
  return count;
}

/** The original position; undefined if the map has none or an invalid one. */
export function originalPosition(
  { map }: ReadMap,
  { line, column }: SourcePosition,
): SourcePosition | undefined {
  try {
    const found = originalPositionFor(map, { line, column: column - 1 });
    if (!found.source || !(found.line >= 1) || !(found.column >= 0)) return undefined;
    const file = found.source.replaceAll(/[\p{Cc}\u2028\u2029]/gu, "").slice(0, fileLengthMax);
    return { file: file.toWellFormed(), line: found.line, column: found.column + 1 };
  } catch {
    return undefined;
  }
}
