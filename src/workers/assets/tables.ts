import type { Immutable } from "../../platform/storage/columns.ts";

export interface AssetFilesTable {
  scope: Immutable<string>;
  hash: Immutable<string>;
  size_bytes: Immutable<number>;
  content_type: Immutable<string | null>;
  blob_key: Immutable<string>;
  used_on: number;
}

export interface AssetManifestsTable {
  id: Immutable<string>;
  scope: Immutable<string>;
  entries: Immutable<string>;
  used_on: number;
}
