import { posixClasses } from "./classes.ts";
import { readEscape } from "./escapes.ts";
import {
  byteMax,
  codePointMax,
  foldAscii,
  intersect,
  negate,
  normalize,
  subtract,
  union,
  type RangeSet,
} from "./automaton/range-set.ts";
import { foldUnicode } from "./fold.ts";
import type { PatternReader } from "./reader.ts";

const depthMax = 64;

/**
 * Reads `[…]`, with nested classes and the operators `&&`, `--` and `~~`, as a set of bytes or of code
 * points.
 */
export function readClass(reader: PatternReader, depth = 0): RangeSet {
  const start = reader.pos;
  if (depth > depthMax) throw reader.fault(`exceeds the nest limit of ${depthMax}`, start);
  reader.pos++;
  const negated = reader.take("^");
  const body = new ClassBody();
  // A bracket in first position, and leading hyphens, are literal.
  reader.skipIgnored();
  while (reader.take("-")) body.addChar(0x2d);
  if (body.isEmpty && reader.here === "]") {
    reader.pos++;
    body.addChar(0x5d);
  }
  for (;;) {
    reader.skipIgnored();
    if (reader.ended) throw reader.fault("unclosed character class", start, start + 1);
    if (reader.take("]")) break;
    if (reader.take("&&")) body.operate(intersect);
    else if (reader.take("--")) body.operate(subtract);
    else if (reader.take("~~")) body.operate((a, b) => subtract(union(a, b), intersect(a, b)));
    else if (reader.here === "[") body.addSet(readPosix(reader) ?? readClass(reader, depth + 1));
    else readItem(reader, body);
  }
  const { unicode, ignoreCase } = reader.flags;
  let set = body.finish();
  if (ignoreCase) set = unicode ? foldUnicode(set) : foldAscii(set);
  return negated ? negate(set, unicode ? codePointMax : byteMax) : set;
}

/** A class under construction: the union of items so far, and an operator without its right side yet. */
class ClassBody {
  #items: (readonly [number, number])[] = [];
  #left: RangeSet | undefined;
  #operator: ((a: RangeSet, b: RangeSet) => RangeSet) | undefined;

  get isEmpty(): boolean {
    return this.#items.length === 0 && this.#left === undefined;
  }

  addChar(point: number): void {
    this.#items.push([point, point]);
  }

  addRange(first: number, last: number): void {
    this.#items.push([first, last]);
  }

  addSet(set: RangeSet): void {
    this.#items.push(...set);
  }

  operate(operator: (a: RangeSet, b: RangeSet) => RangeSet): void {
    this.#left = this.finish();
    this.#operator = operator;
    this.#items = [];
  }

  finish(): RangeSet {
    const items = normalize(this.#items);
    return this.#operator === undefined ? items : this.#operator(this.#left ?? [], items);
  }
}

function readPosix(reader: PatternReader): RangeSet | undefined {
  if (reader.peek(1) !== ":") return undefined;
  const rest = reader.chars.slice(reader.pos).join("");
  const match = /^\[:(\^?)([a-z]+):\]/.exec(rest);
  const set = match === null ? undefined : posixClasses.get(match[2]!);
  if (match === null || set === undefined) return undefined;
  reader.pos += match[0].length;
  return match[1] === "^" ? negate(set, reader.flags.unicode ? codePointMax : byteMax) : set;
}

function readItem(reader: PatternReader, body: ClassBody): void {
  const start = reader.pos;
  const first = readSingle(reader);
  reader.skipIgnored();
  const isRange =
    reader.here === "-" && reader.peek(1) !== "]" && reader.peek(1) !== "-" && reader.peek(1) !== "";
  if (!isRange) {
    if (typeof first === "number") body.addChar(first);
    else body.addSet(first);
    return;
  }
  reader.pos++;
  reader.skipIgnored();
  if (reader.peek(0) === "[") throw reader.fault("invalid character class range", start);
  const last = readSingle(reader);
  if (typeof first !== "number" || typeof last !== "number")
    throw reader.fault("invalid character class range", start);
  if (last < first) {
    throw reader.fault("invalid character class range, the start must be <= the end", start);
  }
  body.addRange(first, last);
}

function readSingle(reader: PatternReader): number | RangeSet {
  const start = reader.pos;
  let char = reader.here;
  let byte = false;
  if (char === "\\") {
    reader.pos++;
    const escape = readEscape(reader, start);
    if (escape === undefined) {
      reader.pos++;
      throw reader.fault("unrecognized escape sequence", start);
    }
    if (escape.kind === "set") return escape.set;
    ({ char, byte } = escape);
  } else {
    reader.pos++;
  }
  const point = char.codePointAt(0)!;
  if (!reader.flags.unicode && point > 0x7f && !byte) throw reader.fault("Unicode not allowed here", start);
  return point;
}
