import { createHash } from "node:crypto";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";

/** A position in a chain: the log's generation, which counts its restarts from 1, and the number of a frame. */
export interface Position {
  generation: number;
  frame: number;
}

/** A commit's time, in milliseconds of the wall clock, and its position. */
export interface Mark extends Position {
  ms: number;
}

/** Consecutive frames of the log, as SQLite wrote them: a header of 24 bytes and a page each. */
export interface Segment {
  /** Counts the segments of a chain from 1. */
  number: number;
  generation: number;
  /** The first frame. */
  first: number;
  pageBytes: number;
  /** Wall-clock time of the copy. All commits in the segment are older. */
  copiedMs: number;
  /** Times of commits in this segment, and in earlier segments that were copied before the times were known. */
  marks: Mark[];
  frames: Buffer;
}

export interface SegmentName {
  number: number;
  copiedMs: number;
  digest: string;
}

export const frameHeaderBytes = 24;
export const logHeaderBytes = 32;
const digestLength = 32;
/** More than the copier writes. Without a limit, a forged file could decompress to more than the memory. */
const contentBytesMax = 64 * 1024 * 1024;
const namePattern = /^(\d{10})-(\d{1,15})-([\da-f]{32})\.zst$/;

export const before = (a: Position, b: Position): boolean =>
  a.generation < b.generation || (a.generation === b.generation && a.frame < b.frame);

/** The last position of a segment. */
export const endOf = ({ generation, first, pageBytes, frames }: Segment): Position => ({
  generation,
  frame: first - 1 + frames.length / (frameHeaderBytes + pageBytes),
});

/** The name and content of a segment's file. The name contains the digest of the content. */
export function encodeSegment({ frames, ...fields }: Segment): { name: string; bytes: Buffer } {
  const header = Buffer.from(JSON.stringify(fields));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(header.length);
  const bytes = zstdCompressSync(Buffer.concat([length, header, frames]));
  const number = String(fields.number).padStart(10, "0");
  return { name: `${number}-${fields.copiedMs}-${digestOf(bytes)}.zst`, bytes };
}

/** Undefined for files that are not segments. */
export function parseName(name: string): SegmentName | undefined {
  const [, number, copiedMs, digest] = namePattern.exec(name) ?? [];
  if (digest === undefined) return undefined;
  return { number: Number(number), copiedMs: Number(copiedMs), digest };
}

/** Undefined if the bytes do not match the digest in the name, or are not a segment. */
export function decodeSegment({ digest }: SegmentName, bytes: Buffer): Segment | undefined {
  if (digestOf(bytes) !== digest) return undefined;
  try {
    const content = zstdDecompressSync(bytes, { maxOutputLength: contentBytesMax });
    const length = content.readUInt32LE();
    const fields = JSON.parse(content.toString("utf8", 4, 4 + length)) as Omit<Segment, "frames">;
    return { ...fields, frames: content.subarray(4 + length) };
  } catch {
    return undefined;
  }
}

const digestOf = (bytes: Buffer): string =>
  createHash("sha256").update(bytes).digest("hex").slice(0, digestLength);
