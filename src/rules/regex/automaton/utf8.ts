import { intersect, type RangeSet } from "./range-set.ts";
import { alternate, concat, type Pattern } from "../syntax.ts";

const lengths: RangeSet = [
  [0, 0x7f],
  [0x80, 0x7ff],
  [0x800, 0xd7ff],
  [0xe000, 0xffff],
  [0x1_0000, 0x10_ffff],
];

/** A pattern for the UTF-8 bytes of any code point of the set. */
export function utf8Pattern(points: RangeSet): Pattern {
  const single = intersect(points, [[0, 0x7f]]);
  const sequences = lengths
    .slice(1)
    .flatMap((length) => intersect(points, [length]).flatMap(([a, b]) => split(a, b)));
  const items = sequences.map((bytes) =>
    concat(bytes.map((range): Pattern => ({ kind: "bytes", set: [range] }))),
  );
  if (single.length > 0 || items.length === 0) items.unshift({ kind: "bytes", set: single });
  return alternate(items);
}

/** A pattern for the UTF-8 bytes of one character. */
export function utf8Literal(char: string): Pattern {
  return concat(
    Array.from(Buffer.from(char, "utf8"), (byte): Pattern => ({ kind: "bytes", set: [[byte, byte]] })),
  );
}

type ByteRange = readonly [number, number];

/** Splits a range of code points with one encoded length into sequences of byte ranges. */
function split(first: number, last: number): ByteRange[][] {
  const a = encode(first);
  const b = encode(last);
  return splitBytes(a, b);
}

function splitBytes(a: readonly number[], b: readonly number[]): ByteRange[][] {
  if (a.length === 1) return [[[a[0]!, b[0]!]]];
  const [headA, ...restA] = a as [number, ...number[]];
  const [headB, ...restB] = b as [number, ...number[]];
  const least = restA.map(() => 0x80);
  const most = restA.map(() => 0xbf);
  if (headA === headB) return splitBytes(restA, restB).map((tail) => [[headA, headA], ...tail]);
  if (restA.some((byte) => byte !== 0x80)) {
    return [
      ...splitBytes(restA, most).map((tail): ByteRange[] => [[headA, headA], ...tail]),
      ...splitBytes([headA + 1, ...least], b),
    ];
  }
  if (restB.some((byte) => byte !== 0xbf)) {
    return [
      ...splitBytes(a, [headB - 1, ...most]),
      ...splitBytes(least, restB).map((tail): ByteRange[] => [[headB, headB], ...tail]),
    ];
  }
  return [[[headA, headB], ...restA.map((): ByteRange => [0x80, 0xbf])]];
}

function encode(point: number): number[] {
  return Array.from(Buffer.from(String.fromCodePoint(point), "utf8"));
}
