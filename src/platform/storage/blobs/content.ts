import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import { sha256 } from "./signature.ts";

/** Content that is complete, so that its parts can be read as often as a store needs them. */
export interface BlobContent {
  sizeBytes: number;
  /** In hex. */
  sha256: string;
  /** The bytes from `start` to `end`, exclusive. */
  read(start: number, end: number): Readable | Uint8Array;
}

export const contentOf = (bytes: Uint8Array): BlobContent => ({
  sizeBytes: bytes.length,
  sha256: sha256(bytes),
  read: (start, end) => bytes.subarray(start, end),
});

/** The content of a file that does not change. */
export const contentOfFile = (path: string, sizeBytes: number, digest: string): BlobContent => ({
  sizeBytes,
  sha256: digest,
  read: (start, end) =>
    start === end
      ? Readable.from([])
      : createReadStream(path, { start, end: end - 1, highWaterMark: 256 * 1024 }),
});
