import type { Readable } from "node:stream";
import type { BlobContent } from "./content.ts";

/** The metadata that a store keeps with content. */
export interface BlobMetadata {
  sizeBytes: number;
  /** In hex; "" if other programs wrote the content. */
  sha256: string;
}

export interface StoredBlob extends BlobMetadata {
  /** The bytes, not yet compared with the digest. The stream fails if the store fails midway. */
  stream: Readable;
}

export interface Listed {
  key: string;
  sizeBytes: number;
  /** Time since the content was written, by the store's own clock. */
  ageMs: number;
}

/** A store of blobs that all nodes share. Names are never written with different content. */
export interface BlobStore {
  readonly kind: "s3" | "postgres";
  /** Larger content is rejected with `BlobTooLarge`. */
  readonly bytesMax: number;
  /** Stores content, which is durable when the promise resolves. */
  put(key: string, content: BlobContent): Promise<void>;
  get(key: string): Promise<StoredBlob | undefined>;
  head(key: string): Promise<BlobMetadata | undefined>;
  /** Deletes content. Succeeds also if there is none. */
  delete(key: string): Promise<void>;
  /** All content whose key begins with the prefix, in order of the keys. */
  list(prefix: string): AsyncIterable<Listed>;
  /** The names directly below a prefix, which ends in a slash. */
  folders(prefix: string): Promise<string[]>;
  /** Removes the unfinished content of dead writers. */
  removeAbandoned(olderThanMs: number): Promise<void>;
  /** Rejects if the store refuses access, for example because of wrong credentials. */
  check(): Promise<void>;
  /** Reads the credentials again. */
  renew(): Promise<void>;
  close(): Promise<void>;
}
