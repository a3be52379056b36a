import type { Immutable } from "./columns.ts";

export interface MetaTable {
  key: Immutable<string>;
  value: string;
}

/** On PostgreSQL, every committed configuration change; see changes/change-log.ts. */
export interface ChangesTable {
  seq: Immutable<number>;
  n: Immutable<number>;
  total: Immutable<number>;
  kind: Immutable<string>;
  id: Immutable<string>;
  parent_id: Immutable<string | null>;
  logged_on: Immutable<number>;
}

/** On PostgreSQL, the number of the last committed transaction with changes; see changes/change-log.ts. One row. */
export interface ChangeHeadTable {
  one: Immutable<1>;
  seq: number;
}

/** The nodes of the installation; see nodes/node-registry.ts. Times are epoch milliseconds of the database's clock. */
export interface NodesTable {
  id: Immutable<string>;
  /** A new id for each start. */
  run: string;
  name: string;
  pid: number;
  /** Identifies the data folder, and differs for a copy of it. */
  place: string;
  version: string;
  /** The location of the node's blobs. */
  blobs: string;
  started_on: number;
  seen_on: number;
  /** When the node was stopped; null if it was not. */
  ended_on: number | null;
  /** On PostgreSQL, the number of the last change that the node has taken over. */
  seq: number | null;
}

/** On PostgreSQL, the calls that nodes count against rate limits; see nodes/shared-rates.ts. */
export interface NodeRatesTable {
  node: Immutable<string>;
  run: string;
  /** JSON: the total of each key since the start of the node. */
  totals: string;
}

/** One row: where the blobs of the installation are. */
export interface BlobPlaceTable {
  /** Always the same: the table has one row. */
  of: Immutable<"blobs">;
  id: string;
  shown: string;
}

export interface BlobsTable {
  key: Immutable<string>;
  size_bytes: Immutable<number>;
  sha256: Immutable<string>;
  written_on: Immutable<number>;
}

export interface BlobChunksTable {
  key: Immutable<string>;
  number: Immutable<number>;
  bytes: Immutable<Uint8Array>;
}
