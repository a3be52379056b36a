import { createHash } from "node:crypto";
import { buffer } from "node:stream/consumers";
import type { Archive, Part } from "../storage/archive/archive.ts";
import { damaged } from "../storage/archive/errors.ts";
import { contentStream, readText } from "../storage/archive/manifest-files.ts";
import { removeAll } from "../storage/archive/remove-all.ts";
import type { Position } from "./segment.ts";
import { decodeSegment, parseName, type Segment, type SegmentName } from "./segment.ts";

/**
 * A copy of the database and the segments that follow it, in `log/NAME/`. The name is a number and a random text, so
 * chains are in the order of their names.
 */
export interface Chain {
  format: 1;
  writtenBy: string;
  /** When the copy was made. */
  startedMs: number;
  pageBytes: number;
  /** The compressed database file. It holds all commits up to this position, and none after it. */
  base: Part;
  at: Position;
  /** Files of the data folder, in addition to the database and the blobs. */
  files: Part[];
  /** The list of blobs that existed: a compressed line with each key. */
  blobs: Part;
}

export const logFolder = "log/";
export const blobsFolder = `${logFolder}blobs/`;
const chainFile = "chain.json";
const namePattern = /^\d{8}-[\da-f]{8}$/;

export const chainPath = (name: string): string => `${logFolder}${name}/`;

/** The names of all chains in order, including incomplete ones. */
export async function chainNames(files: Archive): Promise<string[]> {
  return (await files.folders(logFolder)).filter((name) => namePattern.test(name)).toSorted();
}

/** Writes the file that makes a chain complete. */
export async function writeChain(files: Archive, name: string, chain: Chain): Promise<void> {
  const text = JSON.stringify(chain, null, 2);
  await files.write(`${chainPath(name)}${chainFile}`, contentStream(`${digestOf(text)}\n${text}\n`));
}

/** Undefined if the chain is not complete. */
export async function readChain(files: Archive, name: string): Promise<Chain | undefined> {
  const path = `${chainPath(name)}${chainFile}`;
  const found = await readText(files, path);
  if (found === undefined) return undefined;
  const [, digest, text] = /^([\da-f]{64})\n([^]*)\n$/.exec(found) ?? [];
  if (text === undefined || digestOf(text) !== digest) throw damaged(path);
  return JSON.parse(text) as Chain;
}

/** The segments of a chain in order. Throws if one is missing between others. */
export async function segmentsOf(files: Archive, chain: string): Promise<(SegmentName & { path: string })[]> {
  const segments: (SegmentName & { path: string })[] = [];
  for await (const { path } of files.list(`${chainPath(chain)}segments/`)) {
    const name = parseName(path.slice(path.lastIndexOf("/") + 1));
    if (name !== undefined) segments.push({ ...name, path });
  }
  segments.sort((a, b) => a.number - b.number);
  for (const [index, { number }] of segments.entries())
    if (number !== index + 1) throw damaged(`${chainPath(chain)}segments/`, `lacks segment ${index + 1}`);
  return segments;
}

export async function readSegment(files: Archive, name: SegmentName & { path: string }): Promise<Segment> {
  const found = await files.read(name.path);
  if (found === undefined) throw damaged(name.path, "is missing");
  const segment = decodeSegment(name, await buffer(found.stream as AsyncIterable<Buffer>));
  if (segment === undefined) throw damaged(name.path);
  return segment;
}

export async function removeChain(files: Archive, name: string): Promise<void> {
  await files.remove(`${chainPath(name)}${chainFile}`); // first, so that nothing takes the rest for complete
  await removeAll(files, chainPath(name));
}

const digestOf = (text: string): string => createHash("sha256").update(text).digest("hex");
