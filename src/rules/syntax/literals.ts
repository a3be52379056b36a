import { type Cursor } from "./cursor.ts";
import { Fault } from "../values/fault.ts";
import { encodeUtf8, intOf, type IntValue } from "../values/types.ts";

const isHexDigit = (code: number): boolean =>
  (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x46) || (code >= 0x61 && code <= 0x66);
const i64Min = -(2n ** 63n);
const i64Max = 2n ** 63n - 1n;

/** Reads a signed 64-bit integer: decimal, `0x` hexadecimal, or octal after a leading 0. */
export function readInt(cursor: Cursor): IntValue {
  let start = cursor.pos;
  let radix = 10;
  if (cursor.take("0x")) {
    radix = 16;
    start = cursor.pos;
  } else if (cursor.at("0")) {
    radix = 8;
  } else {
    cursor.take("-");
  }
  // Read all hexadecimal digits, so that the error shows the whole number.
  cursor.takeWhile("digit", isHexDigit);
  return parseInteger(cursor.text.slice(start, cursor.pos), radix, start, cursor.pos);
}

function parseInteger(text: string, radix: number, start: number, end: number): IntValue {
  const fault = (reason: string): Fault =>
    new Fault(`${reason} while parsing with radix ${radix}`, start, end);
  const digits = text.startsWith("-") ? text.slice(1) : text;
  let value = 0n;
  for (const digit of digits) {
    const number = Number.parseInt(digit, 16);
    if (!(number < radix)) throw fault("invalid digit found in string");
    value = value * BigInt(radix) + BigInt(number);
  }
  if (digits !== text) value = -value;
  if (value > i64Max) throw fault("number too large to fit in target type");
  if (value < i64Min) throw fault("number too small to fit in target type");
  return intOf(value);
}

/** Reads a string in any notation: quoted, raw, or bytes in hexadecimal. */
export function readBytes(cursor: Cursor): string {
  if (cursor.ended) throw cursor.faultHere("unrecognised input");
  if (cursor.at('"') || cursor.at("r")) return readText(cursor);
  return readByteString(cursor);
}

/** Reads a quoted or raw string. */
export function readText(cursor: Cursor): string {
  if (cursor.ended) throw cursor.faultHere("unrecognised input");
  if (cursor.take('"')) return readQuoted(cursor);
  if (cursor.take("r")) return encodeUtf8(readRaw(cursor));
  throw cursor.faultHere('expected " or r');
}

function readQuoted(cursor: Cursor): string {
  const start = cursor.pos;
  let result = "";
  for (;;) {
    const char = nextChar(cursor, start);
    if (char === '"') return result;
    if (char !== "\\") {
      result += encodeUtf8(char);
      continue;
    }
    const escapeStart = cursor.pos;
    const escaped = nextChar(cursor, start);
    if (escaped === '"' || escaped === "\\") result += escaped;
    else if (escaped === "x") result += readByte(cursor, 2, 16);
    else if (escaped >= "0" && escaped <= "7") {
      cursor.pos = escapeStart;
      result += readByte(cursor, 3, 8);
    } else {
      throw new Fault('expected ", xHH or OOO after \\', escapeStart, cursor.pos);
    }
  }
}

/** Reads one whole character, so that surrogate pairs are not split. */
function nextChar(cursor: Cursor, start: number): string {
  if (cursor.ended) throw new Fault("could not find an ending quote", start, cursor.text.length);
  const char = String.fromCodePoint(cursor.text.codePointAt(cursor.pos)!);
  cursor.pos += char.length;
  return char;
}

function readByte(cursor: Cursor, digits: number, radix: number): string {
  const start = cursor.pos;
  const chars = Array.from(cursor.text.slice(start, start + digits * 2)).slice(0, digits);
  if (chars.length < digits) {
    throw cursor.faultHere(`expected ${digits} characters, but found ${chars.length}`);
  }
  const text = chars.join("");
  cursor.pos += text.length;
  const fault = (reason: string): Fault =>
    new Fault(`${reason} while parsing with radix ${radix}`, start, cursor.pos);
  const value = chars.every((char) => Number.parseInt(char, 16) < radix)
    ? Number.parseInt(text, radix)
    : undefined;
  if (value === undefined) throw fault("invalid digit found in string");
  if (value > 255) throw fault("number too large to fit in target type");
  return String.fromCharCode(value);
}

/** Reads a raw string after the `r`: `"…"` between equal numbers of `#`, without escapes. */
export function readRaw(cursor: Cursor): string {
  const start = cursor.pos;
  while (cursor.at("#")) cursor.pos++;
  const hashes = cursor.pos - start;
  if (hashes > 255) {
    throw new Fault(
      "invalid raw string hash count, there can't be more than 255 #s",
      start,
      cursor.text.length,
    );
  }
  if (!cursor.take('"')) throw cursor.faultHere('expected " or #');
  const bodyStart = cursor.pos;
  const end = cursor.text.indexOf(`"${"#".repeat(hashes)}`, bodyStart);
  if (end === -1) throw new Fault("could not find an ending quote", start, cursor.text.length);
  cursor.pos = end + 1 + hashes;
  return cursor.text.slice(bodyStart, end);
}

function readByteString(cursor: Cursor): string {
  let result = readByte(cursor, 2, 16);
  if (!takeSeparator(cursor)) {
    if (cursor.ended) throw cursor.faultHere("expected 1 characters, but found 0");
    throw new Fault("expected byte separator", cursor.pos, cursor.pos + 1);
  }
  do result += readByte(cursor, 2, 16);
  while (takeSeparator(cursor));
  return result;
}

function takeSeparator(cursor: Cursor): boolean {
  return cursor.take(":") || cursor.take("-") || cursor.take(".");
}
