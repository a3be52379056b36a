import { normalize, type RangeSet } from "./range-set.ts";

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

/** `\p{name}` over code points: a general category, a script, or a property; undefined when there is none so named. */
export function unicodeProperty(name: string): RangeSet | undefined {
  if (!/^[A-Za-z_]+(?:=[A-Za-z_]+)?$/.test(name)) return undefined;
  const candidates = name.includes("=") ? [name] : [name, `Script=${name}`];
  for (const candidate of candidates) {
    const points = pointsOf(`\\p{${candidate}}`);
    if (points !== undefined) return points;
  }
  return undefined;
}

/** Asks the JavaScript engine, which has the Unicode tables, about every code point; once for each class. */
function pointsOf(classText: string): RangeSet | undefined {
  if (known.has(classText)) return known.get(classText);
  let test: RegExp;
  try {
    test = new RegExp(`^[${classText}]$`, "u");
  } catch {
    return undefined;
  }
  const ranges: [number, number][] = [];
  for (let point = 0; point <= 0x10_ffff; point++) {
    if (point === 0xd800) point = 0xe000;
    if (!test.test(String.fromCodePoint(point))) continue;
    const previous = ranges.at(-1);
    if (previous !== undefined && previous[1] === point - 1) previous[1] = point;
    else ranges.push([point, point]);
  }
  known.set(classText, ranges);
  return ranges;
}
