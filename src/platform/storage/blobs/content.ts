import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { Readable } from "node:stream";
import { sha256 } from "./signature.ts";

/** Complete content, whose parts can be read as often as a store needs them. */
export interface BlobContent {
  sizeBytes: number;
  /** In hex. */
  sha256: string;
  /** The bytes from `start` to `end`, exclusive. */
  read(start: number, end: number): Readable | Uint8Array;
  /** The same bytes, copied to `target`, or without a copy if they are in memory already. */
  readInto(target: Buffer, start: number, end: number): Promise<Uint8Array>;
}

export const contentOf = (bytes: Uint8Array): BlobContent => ({
  sizeBytes: bytes.length,
  sha256: sha256(bytes),
  read: (start, end) => bytes.subarray(start, end),
  readInto: async (_target, start, end) => bytes.subarray(start, end),
});

/** The content of a file that does not change. */
export const contentOfFile = (path: string, sizeBytes: number, digest: string): BlobContent => ({
  sizeBytes,
  sha256: digest,
  read: (start, end) =>
    start === end
      ? Readable.from([])
      : createReadStream(path, { start, end: end - 1, highWaterMark: 256 * 1024 }),
  async readInto(target, start, end) {
    const file = await open(path);
    try {
      for (let at = 0; at < end - start;) {
        const { bytesRead } = await file.read(target, at, end - start - at, start + at);
        if (bytesRead === 0) throw new Error("Expected a file that does not change, but it became shorter");
        at += bytesRead;
      }
      return target.subarray(0, end - start);
    } finally {
      await file.close();
    }
  },
});
