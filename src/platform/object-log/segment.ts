import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { zstdCompress, zstdDecompress } from "node:zlib";
import { buffer } from "node:stream/consumers";
import { z } from "zod";
import type { Archive } from "../storage/archive/archive.ts";
import { damaged } from "../storage/archive/errors.ts";
import { isDatabase, isFacets, isNamespace, type ObjectFile } from "../storage/live-files/object-files.ts";
import type { Stamp } from "./stamps.ts";

/** A change of a file of an object. */
export interface Entry extends ObjectFile {
  /** frames: of the log; base: the whole content; gone: deletion; gap: frames up to the next base are missing. */
  kind: "frames" | "base" | "gone" | "gap";
  /** When the file got this state. */
  stamp: Stamp;
  /** Of a base: frames with a later stamp must be applied to it. */
  start?: Stamp;
  /** Of frames: see `Frames` of live-files. */
  salt?: string;
  first?: number;
  pageBytes?: number;
  pages?: number;
  bytes: Buffer;
}
type EntryHeader = Omit<Entry, "bytes"> & { length: number };

export interface ObjectSegmentName {
  /** Counts from 1, without gaps. */
  number: number;
  /** The last stamp in the segment. */
  stamp: Stamp;
  digest: string;
}

/** The path of the log of objects at its store. */
export const logPrefix = "object-log/";
const segmentsPrefix = `${logPrefix}segments/`;
const namePattern = /\/(\d{10})-([\da-f]{16})-([\da-f]{32})\.zst$/;
const digestLength = 32;
/** More than the shipper writes: a segment ends after 16 MiB, and its last entry may be a commit of up to 32 MiB. */
const contentBytesMax = 128 * 1024 * 1024;
const folderSegments = 10_000;
const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

const stamp = z.string().regex(/^[\da-f]{16}$/);
/** Checked, because anyone who can write to the store can write any entry with the right digest. */
const entries = z
  .array(
    z.object({
      namespace: z.string().refine(isNamespace),
      name: z.string().refine((name) => isDatabase(name) || isFacets(name)),
      kind: z.enum(["frames", "base", "gone", "gap"]),
      stamp,
      start: stamp.optional(),
      salt: z.string().max(64).optional(),
      first: z.int().min(0).optional(),
      pageBytes: z.literal([512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536]).optional(),
      pages: z.int().min(0).optional(),
      length: z.int().min(0),
    }),
  )
  .min(1);

const folderOf = (number: number): string =>
  `${segmentsPrefix}${String(Math.floor(number / folderSegments)).padStart(6, "0")}/`;

/** The paths of all segments, or of those with this number and later ones. */
export async function* segmentsIn(files: Archive, from = 0): AsyncGenerator<{ path: string }> {
  const folders = (await files.folders(segmentsPrefix)).map((name) => `${segmentsPrefix}${name}/`);
  for (const folder of folders) if (folder >= folderOf(from)) yield* files.list(folder);
}

/** Undefined for files that are not segments. */
export function parseSegmentPath(path: string): ObjectSegmentName | undefined {
  const [, number, stamp, digest] = namePattern.exec(path) ?? [];
  return digest === undefined ? undefined : { number: Number(number), stamp: stamp!, digest };
}

/** Writes a segment. Returns its path, which contains the digest of its bytes. */
export async function writeSegment(
  files: Archive,
  number: number,
  entries: readonly Entry[],
): Promise<string> {
  const header = Buffer.from(
    JSON.stringify(entries.map(({ bytes, ...rest }): EntryHeader => ({ ...rest, length: bytes.length }))),
  );
  const length = Buffer.alloc(4);
  length.writeUInt32LE(header.length);
  const bytes = await compress(Buffer.concat([length, header, ...entries.map((entry) => entry.bytes)]));
  const name = `${String(number).padStart(10, "0")}-${entries.at(-1)!.stamp}-${digestOf(bytes)}.zst`;
  const path = `${folderOf(number)}${name}`;
  await files.write(path, chunksOf(bytes));
  return path;
}

/** Reads a segment. Throws a BackupError that names it if it is missing or does not match its digest. */
export async function readEntries(files: Archive, path: string): Promise<Entry[]> {
  const found = await files.read(path);
  if (found === undefined) throw damaged(path, "is missing");
  const bytes = await buffer(found.stream as AsyncIterable<Buffer>);
  if (digestOf(bytes) !== parseSegmentPath(path)?.digest) throw damaged(path);
  const content = await decompress(bytes, { maxOutputLength: contentBytesMax }).catch(() => {
    throw damaged(path, "cannot be decompressed");
  });
  const known = entriesIn(content);
  if (known === undefined) throw damaged(path, "has entries that this program did not write");
  return known;
}

/** Undefined if the content is not what `writeSegment` writes. */
function entriesIn(content: Buffer): Entry[] | undefined {
  if (content.length < 4) return undefined;
  let at = 4 + content.readUInt32LE();
  const headers = entryHeadersIn(content.toString("utf8", 4, at));
  const sizeBytes = headers?.reduce((sum, { length }) => sum + length, at);
  if (headers === undefined || sizeBytes !== content.length) return undefined;
  return headers.map(({ length, ...entry }) => {
    at += length;
    return { ...entry, bytes: content.subarray(at - length, at) };
  });
}

function entryHeadersIn(text: string): EntryHeader[] | undefined {
  try {
    return entries.safeParse(JSON.parse(text)).data as EntryHeader[] | undefined;
  } catch {
    return undefined; // not JSON
  }
}

export async function* chunksOf(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

const digestOf = (bytes: Buffer): string =>
  createHash("sha256").update(bytes).digest("hex").slice(0, digestLength);
