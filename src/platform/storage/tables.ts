import type { Generated } from "kysely";
import type { Flag, Immutable } from "./columns.ts";

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

/** On PostgreSQL, the times in which nodes run objects; see object-shards/lease.ts. */
export interface ObjectNodesTable {
  /** A new one with each start, and after each loss of the lease. */
  id: Generated<number>;
  node: Immutable<string>;
  /** The run of the node, as in `nodes`, and the number of the lease in it. */
  run: Immutable<string>;
  attempt: Immutable<number>;
  /** Where other nodes reach it. */
  address: Immutable<string>;
  /** Without a renewal for so long, other nodes end it. */
  lease_ms: Immutable<number>;
  /** Raised with each renewal. */
  beats: number;
  /** Whether it is about to stop, and gets no shards. */
  leaves: Flag;
  has_ended: Flag;
}

/** On PostgreSQL, the owners of the shards of objects: rows of object_nodes. */
export interface ObjectShardsTable {
  shard: Immutable<number>;
  owner: number | null;
  /** Raised each time that it is taken. */
  term: number;
  /** The last owner that could run its objects. */
  last: number | null;
}

/** On PostgreSQL, the parts of the log of objects of all nodes, in their order; see object-log/shared-order.ts. */
export interface ObjectLogTable {
  number: Immutable<number>;
  /** JSON. */
  part: Immutable<string>;
}

/** On PostgreSQL, values that nodes share, and backups do not have; see nodes/shared-values.ts. */
export interface NodeValuesTable {
  name: Immutable<string>;
  value: Immutable<string>;
}

/** One row: the number of the last part of the log of objects. */
export interface ObjectLogHeadTable {
  one: Immutable<1>;
  number: number;
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
