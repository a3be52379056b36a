import type { Immutable } from "../../platform/storage/columns.ts";

/** Key-value namespaces of accounts. */
export interface KvNamespacesTable {
  id: Immutable<string>;
  account_id: Immutable<string>;
  title: string;
  created_on: Immutable<number>;
}

export interface KvEntriesTable {
  namespace_id: Immutable<string>;
  key: Immutable<Uint8Array>;
  value: Uint8Array | null;
  blob_key: string | null;
  metadata: string | null;
  expires_on: number | null;
}
