import type { Flag, Immutable } from "../../platform/storage/columns.ts";

/** Uploaded images; their bytes are blobs. */
export interface ImagesTable {
  account_id: Immutable<string>;
  id: Immutable<string>;
  filename: string;
  uploaded_on: number;
  require_signed_urls: Flag;
  meta: string;
  creator: string | null;
  upload_token_hash: string | null;
  expires_on: number | null;
  content: string | null;
  focus: string | null;
}

export interface ImageVariantsTable {
  account_id: Immutable<string>;
  id: Immutable<string>;
  options: string;
  never_require_signed_urls: Flag;
  created_on: Immutable<number>;
}

export interface ImageKeysTable {
  account_id: Immutable<string>;
  name: Immutable<string>;
  value: Immutable<string>;
  created_on: Immutable<number>;
}

export interface ImageSettingsTable {
  account_id: Immutable<string>;
  flexible_variants: Flag;
  browser_ttl: number | null;
}

export interface ImageOrphansTable {
  blob_key: Immutable<string>;
  noted_on: Immutable<number>;
}
