import { normalize, type RangeSet } from "./automaton/range-set.ts";

const digit = normalize([[0x30, 0x39]]);
const lower = normalize([[0x61, 0x7a]]);
const upper = normalize([[0x41, 0x5a]]);
const alpha = normalize([...lower, ...upper]);

export const wordBytes: RangeSet = normalize([...alpha, ...digit, [0x5f, 0x5f]]);

/** `\d`, `\s` and `\w` over bytes. */
export const perlClasses: Readonly<Record<string, RangeSet>> = {
  d: digit,
  s: normalize([
    [0x09, 0x0d],
    [0x20, 0x20],
  ]),
  w: wordBytes,
};

/** `[[:name:]]`, always ASCII. */
export const posixClasses: ReadonlyMap<string, RangeSet> = new Map([
  ["alnum", normalize([...alpha, ...digit])],
  ["alpha", alpha],
  ["ascii", [[0, 0x7f]]],
  [
    "blank",
    normalize([
      [0x09, 0x09],
      [0x20, 0x20],
    ]),
  ],
  [
    "cntrl",
    normalize([
      [0, 0x1f],
      [0x7f, 0x7f],
    ]),
  ],
  ["digit", digit],
  ["graph", [[0x21, 0x7e]]],
  ["lower", lower],
  ["print", [[0x20, 0x7e]]],
  [
    "punct",
    normalize([
      [0x21, 0x2f],
      [0x3a, 0x40],
      [0x5b, 0x60],
      [0x7b, 0x7e],
    ]),
  ],
  [
    "space",
    normalize([
      [0x09, 0x0d],
      [0x20, 0x20],
    ]),
  ],
  ["upper", upper],
  ["word", wordBytes],
  ["xdigit", normalize([...digit, [0x41, 0x46], [0x61, 0x66]])],
]);

const perlProperties: Readonly<Record<string, string>> = {
  d: "\\p{Nd}",
  s: "\\p{White_Space}",
  w: "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}",
};

const known = new Map<string, RangeSet | undefined>();

/** `\d`, `\s` and `\w` over code points. */
export function unicodePerlClass(letter: string): RangeSet {
  return pointsOf(perlProperties[letter]!)!;
}

/**
 * `\p{name}` over code points: a general category, a script or a property; undefined if there is none with
 * that name.
 */
export function unicodeProperty(name: string): RangeSet | undefined {
  if (!/^[A-Za-z_]+(?:=[A-Za-z_]+)?$/.test(name)) return undefined;
  const candidates = name.includes("=") ? [name] : [name, `Script=${name}`];
  for (const candidate of candidates) {
    const points = pointsOf(`\\p{${candidate}}`);
    if (points !== undefined) return points;
  }
  return undefined;
}

/** Code points with a single code point as their other case, sorted, in pairs. */
let casePairs: readonly (readonly [number, number])[] | undefined;

export function unicodeCasePairs(): readonly (readonly [number, number])[] {
  return (casePairs ??= pointsOf("\\p{Changes_When_Casemapped}")!.flatMap(([first, last]) =>
    Array.from({ length: last - first + 1 }, (_, i) => first + i).flatMap(otherCases),
  ));
}

function otherCases(point: number): (readonly [number, number])[] {
  const char = String.fromCodePoint(point);
  return [char.toLowerCase(), char.toUpperCase()].flatMap((other) => {
    const folded = other.codePointAt(0)!;
    return folded !== point && String.fromCodePoint(folded) === other ? [[point, folded] as const] : [];
  });
}

/**
 * Tests every code point with the JavaScript engine, which has the Unicode tables. The result is cached for
 * each class.
 */
function pointsOf(classText: string): RangeSet | undefined {
  if (known.has(classText)) return known.get(classText);
  let search: RegExp;
  try {
    search = new RegExp(`[${classText}]+`, "gu");
  } catch {
    return undefined;
  }
  const ranges: [number, number][] = [];
  for (const [start, end] of [[0, 0xd7ff], [0xe000, 0xffff], ...planes] as const) {
    const width = start > 0xffff ? 2 : 1;
    for (const match of pointsText(start, end).matchAll(search)) {
      const first = start + match.index / width;
      ranges.push([first, first + match[0].length / width - 1]);
    }
  }
  const set = normalize(ranges);
  known.set(classText, set);
  return set;
}

const planes = Array.from({ length: 16 }, (_, i) => [(i + 1) << 16, ((i + 1) << 16) | 0xffff] as const);
const texts = new Map<number, string>();

/** A text of all code points of a plane. */
function pointsText(start: number, end: number): string {
  let text = texts.get(start);
  if (text === undefined) {
    text = Array.from({ length: end - start + 1 }, (_, i) => String.fromCodePoint(start + i)).join("");
    texts.set(start, text);
  }
  return text;
}
