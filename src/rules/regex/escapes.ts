import { perlClasses, unicodePerlClass, unicodeProperty } from "./classes.ts";
import { byteMax, codePointMax, negate, type RangeSet } from "./automaton/range-set.ts";
import type { PatternReader } from "./reader.ts";

/**
 * The meaning of an escape, inside or outside a class. `byte` marks `\xNN`, which is a byte and not a
 * character.
 */
export type Escape = { kind: "char"; char: string; byte: boolean } | { kind: "set"; set: RangeSet };

const controls: Readonly<Record<string, string>> = { a: "\x07", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" };
const hexDigits: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/** Reads an escape after its backslash; undefined if it does not represent characters. */
export function readEscape(reader: PatternReader, start: number): Escape | undefined {
  const char = reader.here;
  if (char === "")
    throw reader.fault("incomplete escape sequence, reached end of pattern prematurely", start);
  const control = controls[char];
  if (control !== undefined) {
    reader.pos++;
    return { kind: "char", char: control, byte: false };
  }
  if (char in hexDigits) return readHex(reader, start);
  const perl = /^[dDsSwW]$/.test(char) ? char.toLowerCase() : undefined;
  if (perl !== undefined) {
    reader.pos++;
    return { kind: "set", set: inverted(reader, perlSet(reader, perl), char !== perl) };
  }
  if (char === "p" || char === "P") return readProperty(reader, start);
  if (/^[0-9]$/.test(char)) {
    reader.pos++;
    throw reader.fault("backreferences are not supported", start);
  }
  if (char === " " || (char > " " && char < "\x7f" && !/^[A-Za-z<>]$/.test(char))) {
    reader.pos++;
    return { kind: "char", char, byte: false };
  }
  return undefined;
}

function perlSet(reader: PatternReader, letter: string): RangeSet {
  return reader.flags.unicode ? unicodePerlClass(letter) : perlClasses[letter]!;
}

function inverted(reader: PatternReader, set: RangeSet, invert: boolean): RangeSet {
  return invert ? negate(set, reader.flags.unicode ? codePointMax : byteMax) : set;
}

function readHex(reader: PatternReader, start: number): Escape {
  const letter = reader.here;
  reader.pos++;
  const braced = reader.take("{");
  const digits = braced
    ? reader.takeUntil("}")
    : reader.chars.slice(reader.pos, reader.pos + hexDigits[letter]!).join("");
  if (digits === undefined)
    throw reader.fault("incomplete escape sequence, reached end of pattern prematurely", start);
  if (!braced) reader.pos += Array.from(digits).length;
  if (digits === "") throw reader.fault("hexadecimal literal empty", start);
  if (!/^[0-9A-Fa-f]+$/.test(digits) || (!braced && digits.length !== hexDigits[letter])) {
    throw reader.fault("invalid hexadecimal digit", start);
  }
  const point = Number.parseInt(digits, 16);
  if (point > codePointMax || (point >= 0xd800 && point <= 0xdfff)) {
    throw reader.fault("hexadecimal literal is not a Unicode scalar value", start);
  }
  return { kind: "char", char: String.fromCodePoint(point), byte: letter === "x" && !braced };
}

function readProperty(reader: PatternReader, start: number): Escape {
  let invert = reader.here === "P";
  reader.pos++;
  let name: string | undefined = reader.here;
  if (reader.take("{")) name = reader.takeUntil("}");
  else reader.pos++;
  if (name === undefined || name === "")
    throw reader.fault("incomplete escape sequence, reached end of pattern prematurely", start);
  if (!reader.flags.unicode) throw reader.fault("Unicode not allowed here", start);
  if (name.startsWith("^")) {
    invert = !invert;
    name = name.slice(1);
  }
  const set = unicodeProperty(name.replace(":", "="));
  if (set === undefined) throw reader.fault("Unicode property not found", start);
  return { kind: "set", set: inverted(reader, set, invert) };
}
