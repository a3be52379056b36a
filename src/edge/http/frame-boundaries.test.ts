import { expect, it } from "vitest";
import { fc } from "../../../test/helpers/properties.ts";
import { FrameBoundaries, messageFramesMax } from "./frame-boundaries.ts";

function frame(payloadBytes: number, isMasked: boolean): Buffer {
  const mask = isMasked ? 0x80 : 0;
  const key = Buffer.alloc(isMasked ? 4 : 0, 1);
  const length = Buffer.alloc(payloadBytes > 65_535 ? 9 : payloadBytes > 125 ? 3 : 1);
  if (length.length === 9) length.writeBigUInt64BE(BigInt(payloadBytes), 1);
  else if (length.length === 3) length.writeUInt16BE(payloadBytes, 1);
  length[0] = mask | (length.length === 9 ? 127 : length.length === 3 ? 126 : payloadBytes);
  return Buffer.concat([Buffer.of(0x82), length, key, Buffer.alloc(payloadBytes, 0xff)]);
}

it("knows where frames end, however their bytes are split", () => {
  const sizes = fc.oneof(fc.nat(130), fc.integer({ min: 65_530, max: 65_540 }));
  const frames = fc.array(fc.tuple(sizes, fc.boolean()), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(frames, fc.array(fc.integer({ min: 1, max: 70_000 })), (described, cuts) => {
      const all = described.map(([bytes, isMasked]) => frame(bytes, isMasked));
      const ends = new Set<number>([0]);
      let total = 0;
      for (const each of all) ends.add((total += each.length));
      const bytes = Buffer.concat(all);
      const boundaries = new FrameBoundaries();
      for (let at = 0; at < total;) {
        const next = Math.min(total, at + (cuts.shift() ?? 7));
        boundaries.pass(bytes.subarray(at, next));
        at = next;
        expect(boundaries.isBetweenFrames).toBe(ends.has(at));
      }
    }),
    { numRuns: 50 },
  );
});

it("counts the frames of a message, however its bytes are split", () => {
  const [first, next, last, ping] = ["0100", "0000", "8000", "8900"].map((hex) => Buffer.from(hex, "hex"));
  const message = (frames: number): Buffer =>
    Buffer.concat([first!, ...Array<Buffer>(frames - 1).fill(Buffer.concat([next!, ping!]))]);
  for (const bytesAtOnce of [1, 7, 100_000]) {
    const boundaries = new FrameBoundaries();
    const pass = (bytes: Buffer): void => {
      for (let at = 0; at < bytes.length; at += bytesAtOnce)
        boundaries.pass(bytes.subarray(at, at + bytesAtOnce));
    };
    for (let i = 0; i < 3; i++) pass(Buffer.concat([message(messageFramesMax), last!]));
    expect(boundaries.hasTooManyFrames).toBe(false);
    pass(message(messageFramesMax));
    expect(boundaries.hasTooManyFrames).toBe(false);
    pass(next!);
    expect(boundaries.hasTooManyFrames).toBe(true);
  }
});
