import { endianness } from "node:os";

/* SQLite's write-ahead log ("WAL File Format"): a header, and frames that each have a header and a page. */

export const logHeaderBytes = 32;
export const frameHeaderBytes = 24;

/** The checksum of a frame. It covers the header of the log and all frames up to this one. */
export type Sums = readonly [number, number];

/** The header of a log. The salt changes when the log is restarted. */
export interface LogHeader {
  salt: string;
  pageBytes: number;
  sums: Sums;
}

/** The magic number of logs written with this machine's byte order, in which the checksum reads words. */
const magic = endianness() === "LE" ? 0x377f0682 : 0x377f0683;

/** Continues a checksum over words; `bytes` is aligned to words, and has an even number of them. */
function sum([first, second]: Sums, bytes: Buffer, start: number, end: number): Sums {
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + start, (end - start) / 4);
  let [one, two] = [first, second];
  for (let i = 0; i < words.length; i += 2) {
    one = (one + words[i]! + two) | 0;
    two = (two + words[i + 1]! + one) | 0;
  }
  return [one, two];
}

const isSums = ([one, two]: Sums, bytes: Buffer, at: number): boolean =>
  bytes.readInt32BE(at) === one && bytes.readInt32BE(at + 4) === two;

/** Undefined while the header is being written, and for bytes that are not a log of a machine with this byte order. */
export function readHeader(bytes: Buffer): LogHeader | undefined {
  if (bytes.readUInt32BE(0) !== magic) return undefined;
  const sums = sum([0, 0], bytes, 0, frameHeaderBytes);
  if (!isSums(sums, bytes, frameHeaderBytes)) return undefined;
  return { salt: bytes.toString("hex", 16, 24), pageBytes: bytes.readUInt32BE(8), sums };
}

/** The checksum of the frame at an offset; undefined if it does not follow a frame with the checksum `sums`. */
export function checkFrame(
  bytes: Buffer,
  at: number,
  { salt, pageBytes }: Pick<LogHeader, "salt" | "pageBytes">,
  sums: Sums,
): Sums | undefined {
  if (bytes.toString("hex", at + 8, at + 16) !== salt) return undefined;
  const page = at + frameHeaderBytes;
  const next = sum(sum(sums, bytes, at, at + 8), bytes, page, page + pageBytes);
  return isSums(next, bytes, at + 16) ? next : undefined;
}

/** For a frame that ends a commit, the number of pages of the database after it; otherwise 0. */
export const commitOf = (bytes: Buffer, at: number): number => bytes.readUInt32BE(at + 4);
/** The number of the page that a frame holds, from 1. */
export const pageOf = (bytes: Buffer, at: number): number => bytes.readUInt32BE(at);

/** A buffer whose bytes can be read as words. */
export const wordBuffer = (bytes: number): Buffer => Buffer.from(new ArrayBuffer(bytes));
