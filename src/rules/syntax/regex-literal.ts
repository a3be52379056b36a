import { type Cursor } from "./cursor.ts";
import { Fault } from "../values/fault.ts";
import { readRaw } from "./literals.ts";

/** The source text and position of a pattern. Quoted patterns have special escapes, raw ones have none. */
export interface PatternText {
  text: string;
  start: number;
  end: number;
}

/**
 * Reads the string after `matches`. In a quoted string, only `\"` outside a class loses its backslash, and an
 * unescaped quote inside `[…]` does not end the string.
 */
export function readPatternText(cursor: Cursor): PatternText {
  if (cursor.ended) throw cursor.faultHere("unrecognised input");
  if (cursor.take("r")) {
    const start = cursor.pos;
    return { text: readRaw(cursor), start, end: cursor.pos };
  }
  if (!cursor.take('"')) throw cursor.faultHere('expected " or r');
  const { text } = cursor;
  const start = cursor.pos;
  let pattern = "";
  let inClass = false;
  for (;;) {
    const char = text[cursor.pos];
    if (char === undefined) throw new Fault("could not find an ending quote", start, text.length);
    cursor.pos++;
    if (char === "\\") {
      const escaped = text[cursor.pos];
      if (escaped === undefined) continue;
      cursor.pos++;
      pattern += inClass || escaped !== '"' ? `\\${escaped}` : escaped;
      continue;
    }
    if (char === '"' && !inClass) return { text: pattern, start, end: cursor.pos - 1 };
    if (char === "[") inClass = true;
    else if (char === "]") inClass = false;
    pattern += char;
  }
}
