import type { Table } from "./model.ts";
import type { Pace } from "./pace.ts";
import type { Row } from "./rows.ts";

/** A database that is backed up, also while nodes write to it. */
export interface Source {
  readonly engine: "sqlite" | "postgres";
  /** The pace of all work on the backup. */
  readonly pace: Pace;
  /** Names of the migrations that ran there, in order. */
  schemas(): Promise<string[]>;
  /** Runs `work` with everything as it was at one point in time. */
  snapshot<T>(work: (snapshot: Snapshot) => Promise<T>): Promise<T>;
  /** The row with the same key as it is now, outside the snapshot. */
  current(table: Table, like: Row): Promise<Row | undefined>;
  close(): Promise<void>;
}

export interface Snapshot {
  /** Every row in the order of the key, in batches of limited size. */
  rows(table: Table): AsyncIterable<readonly Row[]>;
  /** The highest number that a numbered table has given out. */
  highestNumber(table: Table): Promise<number>;
}

export const quoted = (name: string): string => `"${name}"`;
export const columnsOf = (table: Table): string => table.columns.map(({ name }) => quoted(name)).join(", ");
/** Rows are passed on in batches of about this size: a node on this machine may wait for the work of one. */
export const batchBytes = 32 * 1024;

/** Approximate size in memory. */
export function rowBytes(row: Row): number {
  let bytes = 0;
  for (const value of Object.values(row))
    bytes += value instanceof Uint8Array || typeof value === "string" ? value.length : 8;
  return bytes;
}
