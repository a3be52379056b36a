import type { Readable } from "node:stream";
import type { BlobContent } from "./content.ts";

/** Facts that a store keeps beside content. */
export interface StoredFacts {
  sizeBytes: number;
  /** In hex; "" if other programs wrote the content. */
  sha256: string;
}

export interface StoredBlob extends StoredFacts {
  /** Nothing has confirmed these bytes yet. Errors if the store fails midway. */
  stream: Readable;
}

export interface Listed {
  key: string;
  sizeBytes: number;
  /** Time since the content was written, by the store's own clock. */
  ageMs: number;
}

/** A place for blobs that all nodes share. Names are never written with different content. */
export interface BlobStore {
  readonly kind: "s3" | "postgres";
  /** Larger content is rejected with `BlobTooLarge`. */
  readonly bytesMax: number;
  /** Durable when it resolves. */
  put(key: string, content: BlobContent): Promise<void>;
  get(key: string): Promise<StoredBlob | undefined>;
  head(key: string): Promise<StoredFacts | undefined>;
  /** Succeeds if there is no content, too. */
  delete(key: string): Promise<void>;
  /** All content whose key begins with the prefix, in order of the keys. */
  list(prefix: string): AsyncIterable<Listed>;
  /** The names directly below a prefix, which ends in a slash. */
  folders(prefix: string): Promise<string[]>;
  /** Removes what writers that died have left behind. */
  removeAbandoned(olderThanMs: number): Promise<void>;
  /** Rejects if the store refuses to be used, for example because of wrong credentials. */
  check(): Promise<void>;
  /** Reads credentials again. */
  renew(): Promise<void>;
  close(): Promise<void>;
}
