import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { mkdir, open, readdir, rm, stat, utimes, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import { unawaited } from "../../../platform/util/uncaught.ts";
import { entriesMax } from "../../../platform/util/loading-cache.ts";
import { memoryObjectBytesMax, ResultMemory } from "./result-memory.ts";

/**
 * A result: small ones are in memory, others are streamed from their file. One with `release` is leased: the
 * caller releases it after sending.
 */
export type Stored = ({ bytes: Buffer } | { path: string; sizeBytes: number }) & { release?: () => void };

export interface ResultsOptions {
  folder: string;
  memoryBytesMax: number;
  diskBytesMax: number;
  logger: Logger;
}

/** Up to this size, one read is cheaper than a stream. */
const readBytesMax = 1024 * 1024;
const filesMax = 128;
/** Buffers kept for reuse: allocating one of this size costs more than reading a result into it. */
const leasesMax = 8;
/** Precision of the order of use after a restart. */
const touchIntervalMs = 10 * 60_000;
const namePattern = /^[0-9a-f]{64}\/[0-9a-f]{32}$/;

interface StoredResult {
  sizeBytes: number;
  touchedAt: number;
  /** True until the first request. */
  isNew: boolean;
}

/**
 * Results in memory and on disk, each limited in bytes. A name consists of the folder of the image and the
 * key of the recipe, so all results of an image are in one folder, and results are found again after a
 * restart.
 */
export class Results {
  readonly #options: ResultsOptions;
  readonly #memory: ResultMemory;
  readonly #disk: LRUCache<string, StoredResult>;
  /**
   * Open files, since opening and closing is most of the cost of a read. An evicted file is closed after its
   * reads.
   */
  readonly #files = new LRUCache<string, Promise<FileHandle>>({
    ...entriesMax(filesMax),
    dispose: (file) => {
      file.then((handle) => handle.close()).catch(() => {});
    },
  });
  readonly #free: Buffer[] = [];
  #leasedCount = 0;
  #loaded: Promise<void> | undefined;

  constructor(options: ResultsOptions) {
    this.#options = options;
    this.#memory = new ResultMemory(options.memoryBytesMax);
    this.#disk = new LRUCache({
      maxSize: options.diskBytesMax,
      sizeCalculation: ({ sizeBytes }) => sizeBytes,
      dispose: (_entry, name, reason) => {
        this.#files.delete(name);
        if (reason === "set") return;
        unawaited(
          rm(this.path(name), { force: true }).catch((error: unknown) => {
            options.logger.warn({ err: error, name }, "a finished picture could not be removed");
          }),
        );
      },
    });
  }

  /** A result from memory, synchronously. */
  inMemory(name: string): Buffer | undefined {
    return this.#memory.get(name);
  }

  async get(name: string): Promise<Stored | undefined> {
    const bytes = this.#memory.get(name);
    if (bytes !== undefined) return { bytes };
    const entry = await this.#use(name);
    if (entry === undefined) return undefined;
    if (entry.sizeBytes > readBytesMax) {
      const path = await this.file(name);
      return path === undefined ? undefined : { path, sizeBytes: entry.sizeBytes };
    }
    try {
      if (entry.isNew) return this.#leaseNew(name, entry);
      if (entry.sizeBytes > memoryObjectBytesMax) return await this.#lease(name, entry.sizeBytes);
      const bytes = await this.#read(name, Buffer.allocUnsafeSlow(entry.sizeBytes));
      this.#memory.set(name, bytes);
      return { bytes };
    } catch {
      // The file was removed by hand: the result is made again.
      this.#disk.delete(name);
      return undefined;
    }
  }

  /** The path of a result, for callers that read the file themselves. */
  async file(name: string): Promise<string | undefined> {
    if ((await this.#use(name)) === undefined) return undefined;
    const path = this.path(name);
    if (existsSync(path)) return path;
    this.#disk.delete(name);
    return undefined;
  }

  async #use(name: string): Promise<StoredResult | undefined> {
    await this.#load();
    const entry = this.#disk.get(name);
    if (entry !== undefined && entry.touchedAt < Date.now() - touchIntervalMs) {
      entry.touchedAt = Date.now();
      const now = new Date();
      utimes(this.path(name), now, now).catch(() => {}); // a failure only affects the order of use after a restart
    }
    return entry;
  }

  async #lease(name: string, sizeBytes: number): Promise<Stored> {
    const leased = this.#leaseBuffer(sizeBytes);
    try {
      await this.#read(name, leased.bytes);
      return leased;
    } catch (error) {
      leased.release();
      throw error;
    }
  }

  /**
   * Reads a result that was written a moment ago and so is in the page cache, synchronously. Most results are
   * requested once; only a second request caches a result in memory, because new buffers cause a full garbage
   * collection after a few hundred.
   */
  #leaseNew(name: string, entry: StoredResult): Stored {
    entry.isNew = false;
    const file = openSync(this.path(name), "r");
    const leased = this.#leaseBuffer(entry.sizeBytes);
    try {
      if (readSync(file, leased.bytes, 0, entry.sizeBytes, 0) < entry.sizeBytes) throw tooShort();
      return leased;
    } catch (error) {
      leased.release();
      throw error;
    } finally {
      closeSync(file);
    }
  }

  /**
   * When the pool is exhausted, allocates exactly `sizeBytes`, so that slow readers do not hold 1 MiB each.
   */
  #leaseBuffer(sizeBytes: number): { bytes: Buffer; release: () => void } {
    let whole = this.#free.pop();
    if (whole === undefined) {
      if (this.#leasedCount === leasesMax)
        return { bytes: Buffer.allocUnsafeSlow(sizeBytes), release: () => {} };
      this.#leasedCount += 1;
      whole = Buffer.allocUnsafeSlow(readBytesMax);
    }
    const back = whole;
    return {
      bytes: back.subarray(0, sizeBytes),
      release: () => {
        this.#free.push(back);
      },
    };
  }

  async #read(name: string, into: Buffer): Promise<Buffer> {
    let file = this.#files.get(name);
    if (file === undefined) this.#files.set(name, (file = open(this.path(name))));
    const { bytesRead } = await (await file).read(into, 0, into.length, 0);
    if (bytesRead < into.length) throw tooShort();
    return into;
  }

  close(): void {
    this.#files.clear();
  }

  /**
   * Registers a file written to its path while `isWanted` holds: its source may have been deleted in the
   * meantime.
   */
  adopt(name: string, sizeBytes: number, isWanted: () => boolean): void {
    this.#disk.set(name, { sizeBytes, touchedAt: Date.now(), isNew: true });
    if (!isWanted()) this.#disk.delete(name);
  }

  /** Keeps bytes that could not be written to disk. */
  keepInMemory(name: string, bytes: Buffer, isWanted: () => boolean): Stored {
    if (isWanted()) this.#memory.set(name, bytes);
    return { bytes };
  }

  /** Deletes all results of an image. Its folder has their names, so results of other images cost nothing. */
  async purge(folder: string): Promise<void> {
    this.#memory.forget(folder);
    await this.#load();
    for (const key of await readdir(this.path(folder)).catch(() => [])) this.#disk.delete(`${folder}/${key}`);
    await rm(this.path(folder), { recursive: true, force: true });
  }

  /** The path of a result. */
  path(name: string): string {
    return `${this.#options.folder}/${name.slice(0, 2)}/${name}`;
  }

  /** Loads, once, the list of results on disk. Retried after a failure. */
  async #load(): Promise<void> {
    this.#loaded ??= this.#find().catch((error: unknown) => {
      this.#loaded = undefined;
      throw error;
    });
    return this.#loaded;
  }

  /** Least recently used first. */
  async #find(): Promise<void> {
    const { folder } = this.#options;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const found: { name: string; sizeBytes: number; usedAt: number }[] = [];
    for (const file of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!file.isFile()) continue;
      const path = join(file.parentPath, file.name);
      const name = path.slice(folder.length + "/ab/".length);
      const { size, mtimeMs } = await stat(path);
      if (namePattern.test(name) && size > 0) found.push({ name, sizeBytes: size, usedAt: mtimeMs });
      else await rm(path, { force: true });
    }
    for (const { name, sizeBytes, usedAt } of found.toSorted((a, b) => a.usedAt - b.usedAt))
      if (!this.#disk.has(name)) this.#disk.set(name, { sizeBytes, touchedAt: usedAt, isNew: false });
  }
}

const tooShort = (): Error => new Error("the file is shorter than before");
