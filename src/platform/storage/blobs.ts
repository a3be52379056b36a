import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import type { BlobCounts } from "./blobs/blob-counts.ts";
import { syncPath } from "./durability.ts";
import { Incoming, missing } from "./blobs/incoming.ts";

/** Immutable content by key. Keys have the form `a/b/c`, of letters, digits, `-`, `_` and `.`. */
export interface Blobs {
  /** Stores content, which is durable when the promise resolves. A second `put` replaces it for later readers. */
  put(key: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<{ sizeBytes: number }>;
  /** Undefined if there is no content. `end` is the last byte, inclusive, as in a range request. */
  get(key: string, range?: { start: number; end: number }): Promise<Blob | undefined>;
  head(key: string): Promise<{ sizeBytes: number } | undefined>;
  /** Deletes content. Succeeds also if there is none. */
  delete(key: string): Promise<void>;
  /** The content as a local file, for callers that map or stream it themselves. */
  file(key: string): Promise<BlobFile>;
  /** All complete content, or that whose key begins with the prefix and a slash, in no particular order. */
  list(prefix?: string): AsyncIterable<{ key: string; sizeBytes: number }>;
  /** The folders directly below a prefix. */
  folders(prefix: string): Promise<string[]>;
  /** Deletes all content whose key begins with the prefix and a slash. */
  deleteFolder(prefix: string): Promise<void>;
  /**
   * Removes unreferenced content under a prefix, which a process leaves if it dies before it stores the
   * reference. `named` returns the referenced keys among those of one folder. Content written after
   * `writtenBefore` stays, because its reference may follow. Returns the count.
   */
  removeUnnamed(
    prefix: string,
    writtenBefore: number,
    named: (keys: readonly string[]) => Promise<ReadonlySet<string>>,
  ): Promise<number>;
  /** Removes partial content of writers that died. */
  removeAbandoned(untouchedSince: number): Promise<void>;
  /** Rejects while the disk lacks space for the content that failed last, or for any content. */
  check(): Promise<void>;
}

export interface Blob {
  /** Size of the whole content, regardless of the range. */
  sizeBytes: number;
  stream: Readable;
}

/** A local file. It exists until its release, which the caller does exactly once. */
export interface BlobFile {
  path: string;
  release: () => void;
}

const keysAtOnce = 500;
/** Unreferenced content older than this cannot belong to an upload in progress. */
export const orphanAgeMs = 24 * 60 * 60 * 1000;
/** Throws for a text that is not a key: its path could leave the folder of blobs. */
export function checkKey(key: string): void {
  if (!keyPattern.test(key)) throw new Error(`not a blob key: ${JSON.stringify(key)}`);
}
const keyPattern = /^(?!\.)[\w.-]{1,255}(\/(?!\.)[\w.-]{1,255}){0,7}$/;

/** For the test kit: runs before content is written. */
export interface BlobsUnderTest {
  beforeWrite: (() => Promise<void>) | undefined;
}

/** Blobs as files in a folder. Files are written elsewhere, flushed, and then renamed. */
export class FileBlobs implements Blobs {
  readonly #folder: string;
  readonly #incoming: Incoming;
  readonly #counts: BlobCounts | undefined;
  readonly #underTest: BlobsUnderTest | undefined;

  constructor(folder: string, counts?: BlobCounts, underTest?: BlobsUnderTest) {
    this.#underTest = underTest;
    this.#folder = folder;
    this.#counts = counts;
    this.#incoming = new Incoming(join(folder, "incoming"));
  }

  async put(key: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<{ sizeBytes: number }> {
    const path = this.path(key);
    if (this.#underTest?.beforeWrite !== undefined) await this.#underTest.beforeWrite();
    const written = await this.#incoming.write(content, { isDurable: true });
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await rename(written.path, path);
    } catch (error) {
      await rm(written.path, { force: true });
      throw error;
    }
    await syncPath(dirname(path));
    return { sizeBytes: written.sizeBytes };
  }

  async check(): Promise<void> {
    await this.#incoming.check();
  }

  async get(key: string, range?: { start: number; end: number }): Promise<Blob | undefined> {
    const file = await open(this.path(key)).catch(missing);
    if (file === undefined) {
      if (this.#counts !== undefined) this.#counts.missing += 1;
      return undefined;
    }
    try {
      const found = await file.stat();
      // Fail here, because a read would fail only after the response's head has been sent.
      if (!found.isFile()) throw new Error(`Expected a file at ${this.path(key)}`);
      const { size } = found;
      if (size === 0) {
        await file.close();
        return { sizeBytes: 0, stream: Readable.from([]) };
      }
      return { sizeBytes: size, stream: file.createReadStream({ ...range, highWaterMark: 256 * 1024 }) };
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async head(key: string): Promise<{ sizeBytes: number } | undefined> {
    const found = await stat(this.path(key)).catch(missing);
    return found === undefined ? undefined : { sizeBytes: found.size };
  }

  async delete(key: string): Promise<void> {
    await rm(this.path(key), { force: true });
  }

  async file(key: string): Promise<BlobFile> {
    return { path: this.path(key), release };
  }

  async *list(prefix?: string): AsyncGenerator<{ key: string; sizeBytes: number }, void> {
    if (prefix !== undefined) return yield* this.#listFolder(prefix);
    for (const entry of (await readdir(this.#folder, { withFileTypes: true }).catch(missing)) ?? [])
      if (entry.isDirectory() && entry.name !== "incoming") yield* this.#listFolder(entry.name);
  }

  async *#listFolder(prefix: string): AsyncGenerator<{ key: string; sizeBytes: number }, void> {
    for (const entry of (await readdir(this.path(prefix), { withFileTypes: true }).catch(missing)) ?? []) {
      const key = `${prefix}/${entry.name}`;
      if (entry.isDirectory()) yield* this.#listFolder(key);
      else if (entry.isFile()) {
        const found = await this.head(key);
        if (found !== undefined) yield { key, ...found };
      }
    }
  }

  async folders(prefix: string): Promise<string[]> {
    return (await readdir(this.path(prefix)).catch(missing)) ?? [];
  }

  async deleteFolder(prefix: string): Promise<void> {
    await rm(this.path(prefix), { recursive: true, force: true });
  }

  async removeUnnamed(
    prefix: string,
    writtenBefore: number,
    named: (keys: readonly string[]) => Promise<ReadonlySet<string>>,
  ): Promise<number> {
    const entries = (await readdir(this.path(prefix), { withFileTypes: true }).catch(missing)) ?? [];
    const keys = entries.filter((entry) => entry.isFile()).map(({ name }) => `${prefix}/${name}`);
    let removed = 0;
    for (let at = 0; at < keys.length; at += keysAtOnce) {
      const batch = keys.slice(at, at + keysAtOnce);
      const known = await named(batch);
      for (const key of batch) {
        if (known.has(key)) continue;
        const found = await stat(this.path(key)).catch(missing);
        if (found === undefined || found.mtimeMs >= writtenBefore) continue;
        await this.delete(key);
        removed += 1;
      }
    }
    for (const entry of entries)
      if (entry.isDirectory())
        removed += await this.removeUnnamed(`${prefix}/${entry.name}`, writtenBefore, named);
    return removed;
  }

  async removeAbandoned(untouchedSince: number): Promise<void> {
    await this.#incoming.removeAbandoned(untouchedSince);
  }

  /** The path of the file, whether it exists or not. */
  path(key: string): string {
    checkKey(key);
    return join(this.#folder, key);
  }
}

/** A file exists until its blob is deleted. */
const release = (): void => {};
