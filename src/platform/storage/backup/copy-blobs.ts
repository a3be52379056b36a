import type { Blobs } from "../blobs.ts";
import type { Archive, Part } from "../archive/archive.ts";
import { readLines, writePart } from "../archive/parts.ts";
import type { Table } from "./model.ts";
import { paced, type Pace } from "./pace.ts";
import { blobOf, rowKeyOf, rowLine, rowOf, type Row } from "./rows.ts";
import type { Source } from "./source.ts";

/** Concurrent copies. Each upload to a bucket takes up to 16 MiB of memory. */
const atOnce = 4;

export interface CopyContext {
  source: Source;
  blobs: Blobs;
  /** The archive. */
  files: Archive;
}

/** Differences from the snapshot. */
export interface Deviations {
  /** By the row's key: rows that were changed after the snapshot, as they are now; undefined if deleted. */
  amended: Map<string, Row | undefined>;
  /** Blobs that rows name and that do not exist. */
  missing: string[];
}

export const blobPath = (key: string): string => `blobs/${key}`;

/** Copies the blobs that rows of a table name. */
export async function* copyBlobs(
  context: CopyContext,
  table: Table,
  lines: AsyncIterable<string>,
  deviations: Deviations,
): AsyncGenerator<Part> {
  let rows: Row[] = [];
  const copyRows = async (): Promise<Part[]> => {
    // Every copy ends before an error is passed on, because the archive is then removed.
    const copies = await Promise.allSettled(
      rows.map(async (row) => copyBlobOf(context, table, row, deviations)),
    );
    rows = [];
    return copies.flatMap((copy) => {
      if (copy.status === "rejected") throw copy.reason;
      return copy.value ?? [];
    });
  };
  for await (const line of lines) {
    rows.push(rowOf(table, line));
    if (rows.length >= atOnce) yield* await copyRows();
  }
  yield* await copyRows();
}

/**
 * Copies a row's blob. A node may have deleted the blob since the snapshot, because its row was deleted or
 * replaced. Then the row is archived as it is now.
 */
async function copyBlobOf(
  { source, blobs, files }: CopyContext,
  table: Table,
  archived: Row,
  { amended, missing }: Deviations,
): Promise<Part | undefined> {
  let row: Row | undefined = archived;
  let part: Part | undefined;
  for (let key = blobOf(table, archived); key !== null;) {
    part = await copy(blobs, files, key, source.pace);
    if (part !== undefined) break;
    row = await source.current(table, archived);
    const currentKey: string | null = row === undefined ? null : blobOf(table, row);
    if (currentKey === key) {
      missing.push(key);
      break;
    }
    key = currentKey;
  }
  if (row === undefined || blobOf(table, row) !== blobOf(table, archived))
    amended.set(rowKeyOf(table, archived), row);
  return part;
}

async function copy(blobs: Blobs, files: Archive, key: string, pace: Pace): Promise<Part | undefined> {
  const blob = await blobs.get(key);
  if (blob === undefined) return undefined;
  return writePart(files, blobPath(key), paced(blob.stream as AsyncIterable<Uint8Array>, pace));
}

/** The lines of a table with its amended rows. */
export async function* amendedLines(
  files: Archive,
  table: Table,
  archived: Part,
  amended: Deviations["amended"],
): AsyncGenerator<string> {
  for await (const line of readLines(files, archived)) {
    const key = rowKeyOf(table, rowOf(table, line));
    const row = amended.get(key);
    if (row !== undefined) yield rowLine(table, row);
    else if (!amended.has(key)) yield `${line}\n`;
  }
}
