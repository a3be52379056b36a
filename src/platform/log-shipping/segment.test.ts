import { createHash } from "node:crypto";
import { zstdCompressSync } from "node:zlib";
import { expect, it } from "vitest";
import { decodeSegment, encodeSegment, parseName } from "./segment.ts";

const nameOf = (bytes: Buffer) => {
  const digest = createHash("sha256").update(bytes).digest("hex").slice(0, 32);
  return parseName(`0000000001-1-${digest}.zst`)!;
};

it("a segment is read as it was written", () => {
  const segment = {
    number: 1,
    generation: 2,
    first: 3,
    pageBytes: 512,
    copiedMs: 4,
    marks: [{ ms: 5, generation: 2, frame: 3 }],
    frames: Buffer.alloc(536, 7),
  };
  const { name, bytes } = encodeSegment(segment);
  expect(decodeSegment(parseName(name)!, bytes)).toEqual(segment);
});

it.each([
  ["decompresses to more than a segment", zstdCompressSync(Buffer.alloc(65 * 1024 * 1024))],
  ["is not compressed", Buffer.from("text")],
  ["has no JSON", zstdCompressSync(Buffer.from([255, 255, 0, 0, 1]))],
  ["is empty", Buffer.alloc(0)],
])("a forged file with the right digest is not a segment if it %s", (_, bytes) => {
  expect(decodeSegment(nameOf(bytes), bytes)).toBeUndefined();
});
