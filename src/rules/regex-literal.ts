import { type Cursor, Fault } from "./cursor.ts";
import { readRaw } from "./literals.ts";

/** A pattern as written, and where; quoted patterns have their own escaping, raw ones none. */
export interface PatternText {
  text: string;
  start: number;
  end: number;
}

/**
 * Reads the string after `matches`. In a quoted one only `\"` outside a class loses its backslash,
 * and inside `[…]` a bare quote does not end the string.
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
