import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { Logger } from "pino";
import { checkKey, type Blob, type BlobFile, type Blobs } from "../blobs.ts";
import { BlobMissing, BlobsUnavailable, BlobTooLarge, isUnavailable } from "../faults.ts";
import { BlobCache, type CachedFile } from "./blob-cache.ts";
import type { BlobCounts, BlobOperation } from "./blob-counts.ts";
import type { BlobStore } from "./blob-store.ts";
import { contentOf, contentOfFile } from "./content.ts";
import { Incoming } from "./incoming.ts";

export interface RemoteBlobsOptions {
  store: BlobStore;
  /** For the cache and for content that is not complete yet. */
  folder: string;
  cacheBytes: number;
  counts: BlobCounts;
  logger: Logger;
}

/** A download that several readers can wait for. */
interface Download {
  waiting: number;
  done: Promise<CachedFile | undefined>;
}

const keysAtOnce = 500;
const deletesAtOnce = 8;
const sweepIntervalMs = 60 * 60 * 1000;

/**
 * Blobs in a store that all nodes share, through a cache of local files. A read first downloads all of the
 * content and compares its digest.
 */
export class RemoteBlobs implements Blobs {
  readonly #store: BlobStore;
  readonly #cache: BlobCache;
  readonly #incoming: Incoming;
  readonly #counts: BlobCounts;
  readonly #logger: Logger;
  readonly #downloads = new Map<string, Download>();
  #sweptAt = 0;

  constructor({ store, folder, cacheBytes, counts, logger }: RemoteBlobsOptions) {
    this.#store = store;
    this.#cache = new BlobCache(join(folder, "kept"), cacheBytes);
    this.#incoming = new Incoming(join(folder, "incoming"));
    this.#counts = counts;
    this.#logger = logger;
    counts.cacheBytes = () => this.#cache.bytes;
  }

  async put(key: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<{ sizeBytes: number }> {
    checkKey(key);
    const { bytesMax } = this.#store;
    if (content instanceof Uint8Array) {
      if (content.length > bytesMax) throw new BlobTooLarge(bytesMax);
      await this.#counted("put", () => this.#store.put(key, contentOf(content)));
      await this.#cache.forget(key);
      return { sizeBytes: content.length };
    }
    const tooLarge = (): Error => new BlobTooLarge(bytesMax);
    const file = await this.#incoming.writeHashed(content, { bytes: bytesMax, tooLarge });
    try {
      const { path, sizeBytes, sha256 } = file;
      await this.#counted("put", () => this.#store.put(key, contentOfFile(path, sizeBytes, sha256)));
      // Kept in the cache, because the first reader is often on this node.
      (await this.#cache.adopt(key, file, () => 1)).release();
      return { sizeBytes };
    } finally {
      await rm(file.path, { force: true });
    }
  }

  async get(key: string, range?: { start: number; end: number }): Promise<Blob | undefined> {
    const cached = await this.#find(key);
    if (cached === undefined) return undefined;
    const { sizeBytes, path, release } = cached;
    try {
      if (sizeBytes === 0) {
        release();
        return { sizeBytes, stream: Readable.from([]) };
      }
      const file = await open(path);
      const stream = file.createReadStream({ ...range, highWaterMark: 256 * 1024 });
      stream.once("close", release);
      return { sizeBytes, stream };
    } catch (error) {
      release();
      throw error;
    }
  }

  async head(key: string): Promise<{ sizeBytes: number } | undefined> {
    checkKey(key);
    const found = await this.#counted("head", () => this.#store.head(key));
    return found && { sizeBytes: found.sizeBytes };
  }

  async delete(key: string): Promise<void> {
    checkKey(key);
    await this.#counted("delete", () => this.#store.delete(key));
    await this.#cache.forget(key);
  }

  async file(key: string): Promise<BlobFile> {
    const found = await this.#find(key);
    if (found === undefined) throw new BlobMissing(key);
    return found;
  }

  list(prefix?: string): AsyncIterable<{ key: string; sizeBytes: number }> {
    return this.#store.list(prefix === undefined ? "" : `${prefix}/`);
  }

  async folders(prefix: string): Promise<string[]> {
    checkKey(prefix);
    return this.#counted("list", () => this.#store.folders(`${prefix}/`));
  }

  async deleteFolder(prefix: string): Promise<void> {
    checkKey(prefix);
    await this.#removeListed(prefix, 0, async () => new Set());
  }

  async removeUnnamed(
    prefix: string,
    writtenBefore: number,
    named: (keys: readonly string[]) => Promise<ReadonlySet<string>>,
  ): Promise<number> {
    checkKey(prefix);
    return this.#removeListed(prefix, Date.now() - writtenBefore, named);
  }

  async removeAbandoned(untouchedSince: number): Promise<void> {
    await this.#incoming.removeAbandoned(untouchedSince);
    if (Date.now() - this.#sweptAt < sweepIntervalMs) return;
    this.#sweptAt = Date.now();
    await this.#store.removeAbandoned(Date.now() - untouchedSince);
  }

  async check(): Promise<void> {
    await this.#incoming.check();
  }

  /** A lease of the content's local file; undefined if there is no content. */
  async #find(key: string): Promise<CachedFile | undefined> {
    checkKey(key);
    const cached = await this.#cache.lease(key);
    this.#counts.cache[cached === undefined ? "miss" : "hit"] += 1;
    if (cached !== undefined) return cached;
    let download = this.#downloads.get(key);
    if (download === undefined) {
      const begun: Download = { waiting: 0, done: Promise.resolve(undefined) };
      begun.done = this.#download(key, begun).finally(() => this.#end(key, begun));
      this.#downloads.set(key, (download = begun));
    }
    download.waiting += 1;
    const found = await download.done;
    if (found === undefined) {
      this.#counts.missing += 1;
      this.#logger.warn({ blob: key }, "a blob is missing in its store");
    }
    return found;
  }

  #end(key: string, download: Download): void {
    if (this.#downloads.get(key) === download) this.#downloads.delete(key);
  }

  /** Readers that wait when the download ends get a lease each; later ones find the content in the cache. */
  async #download(key: string, download: Download): Promise<CachedFile | undefined> {
    const stored = await this.#counted("get", async () => {
      const found = await this.#store.get(key);
      if (found === undefined) return undefined;
      const { bytesMax } = this.#store;
      const file = await this.#incoming
        .writeHashed(found.stream, { bytes: bytesMax, tooLarge: () => new BlobTooLarge(bytesMax) })
        .finally(() => found.stream.destroy());
      if (file.sha256 === found.sha256 && file.sizeBytes === found.sizeBytes) return file;
      await rm(file.path, { force: true });
      this.#counts.damaged += 1;
      throw new Error(`the content of the blob ${key} differs from its digest`);
    });
    if (stored === undefined) return undefined;
    try {
      return await this.#cache.adopt(key, stored, () => {
        this.#end(key, download);
        return download.waiting;
      });
    } finally {
      await rm(stored.path, { force: true });
    }
  }

  async #removeListed(
    prefix: string,
    ageMsMin: number,
    named: (keys: readonly string[]) => Promise<ReadonlySet<string>>,
  ): Promise<number> {
    let removed = 0;
    let batch: string[] = [];
    const remove = async (): Promise<void> => {
      if (batch.length === 0) return;
      const known = await named(batch);
      const unnamed = batch.filter((key) => !known.has(key));
      for (let at = 0; at < unnamed.length; at += deletesAtOnce)
        await Promise.all(unnamed.slice(at, at + deletesAtOnce).map((key) => this.delete(key)));
      removed += unnamed.length;
      batch = [];
    };
    for await (const { key, ageMs } of this.#store.list(`${prefix}/`)) {
      if (ageMs < ageMsMin) continue;
      // `named` gets keys of one folder.
      if (batch.length === keysAtOnce || folderOf(batch[0] ?? key) !== folderOf(key)) await remove();
      batch.push(key);
    }
    await remove();
    return removed;
  }

  async #counted<T>(operation: BlobOperation, work: () => Promise<T>): Promise<T> {
    const startMs = performance.now();
    try {
      const result = await work();
      const isMissing = result === undefined && operation !== "put" && operation !== "delete";
      this.#counts.note(operation, isMissing ? "missing" : "ok", startMs);
      return result;
    } catch (error) {
      const isAway = error instanceof BlobsUnavailable || isUnavailable(error);
      this.#counts.note(operation, isAway ? "unavailable" : "failed", startMs);
      throw error;
    }
  }
}

const folderOf = (key: string): string => key.slice(0, key.lastIndexOf("/"));
