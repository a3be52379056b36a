/** A read-only query of one database file. */
export interface QueryJob {
  file: string;
  /** Whether no process has the file open, so that it needs no locks and no log. */
  isClosed: boolean;
  sql: string;
  params: readonly (string | number | null)[];
}

/** JSON of QueryResult, or why there is none. */
export type QueryReply = { result: string } | { error: string };

export interface QueryResult {
  columns: string[];
  /** Blobs are arrays of bytes; integers beyond 2^53 are texts. */
  rows: unknown[][];
  /** Whether rows are missing, because of the limits. */
  truncated: boolean;
}

export const queryLimits = {
  rowsMax: 10_000,
  /** Characters of the result's JSON. */
  charactersMax: 1024 * 1024,
  timeMs: 30_000,
  sqlLengthMax: 100_000,
  paramsMax: 100,
  /** Longest text or blob that SQLite handles. */
  valueBytes: 4 * 1024 * 1024,
  /** Resident memory of the process. */
  memoryBytes: 300 * 1024 * 1024,
};
