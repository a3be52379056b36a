import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { mkdir, open, readdir, rm, stat, utimes, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { LRUCache } from "lru-cache";
import type { Logger } from "pino";

/**
 * A finished picture: small ones lie in memory, others are streamed from their file. Bytes with `release` are lent:
 * whoever has sent them gives them back.
 */
export type Stored = { bytes: Buffer; release?: () => void } | { path: string; sizeBytes: number };

export interface ResultsOptions {
  folder: string;
  memoryBytesMax: number;
  diskBytesMax: number;
  logger: Logger;
}

/** Larger results are not worth their place in memory. */
const memoryObjectBytesMax = 256 * 1024;
/** Up to here one read is cheaper than a stream. */
const readBytesMax = 1024 * 1024;
const filesMax = 128;
/** Kept for the next read: new ones of this size cost more than what is read into them. */
const lendableMax = 8;
/** How exact the order of use is after a restart. */
const touchIntervalMs = 10 * 60_000;
const namePattern = /^[0-9a-f]{64}\/[0-9a-f]{32}$/;

interface Entry {
  sizeBytes: number;
  touchedAt: number;
  /** Nobody has had it yet. */
  isNew: boolean;
}

/**
 * Finished pictures, in memory and on disk, each bounded in bytes. A name is the folder of the image and the key of the
 * recipe, so that everything made from an image is in one folder, and what is on disk is found again after a restart.
 */
export class Results {
  readonly #options: ResultsOptions;
  readonly #memory: LRUCache<string, Buffer>;
  readonly #disk: LRUCache<string, Entry>;
  /** Kept open: most of what a read costs is opening and closing. One that falls out finishes its reads. */
  readonly #files = new LRUCache<string, Promise<FileHandle>>({
    max: filesMax,
    dispose: (file) => void file.then((handle) => handle.close()).catch(() => {}),
  });
  readonly #free: Buffer[] = [];
  #lendable = 0;
  #loaded: Promise<void> | undefined;

  constructor(options: ResultsOptions) {
    this.#options = options;
    this.#memory = new LRUCache({
      maxSize: options.memoryBytesMax,
      maxEntrySize: memoryObjectBytesMax,
      sizeCalculation: (bytes) => bytes.length + 256,
    });
    this.#disk = new LRUCache({
      maxSize: options.diskBytesMax,
      sizeCalculation: ({ sizeBytes }) => sizeBytes,
      dispose: (_entry, name, reason) => {
        this.#files.delete(name);
        if (reason === "set") return;
        rm(this.path(name), { force: true }).catch((error: unknown) => {
          options.logger.warn({ err: error, name }, "a finished picture could not be removed");
        });
      },
    });
  }

  /** What lies in memory, at once. */
  quick(name: string): Buffer | undefined {
    return this.#memory.get(name);
  }

  async get(name: string): Promise<Stored | undefined> {
    const bytes = this.#memory.get(name);
    if (bytes !== undefined) return { bytes };
    const entry = await this.#use(name);
    if (entry === undefined) return undefined;
    if (entry.sizeBytes > readBytesMax) return { path: this.path(name), sizeBytes: entry.sizeBytes };
    try {
      if (entry.isNew) return this.#lendNew(name, entry);
      if (entry.sizeBytes > memoryObjectBytesMax) return await this.#lend(name, entry.sizeBytes);
      const bytes = await this.#read(name, Buffer.allocUnsafeSlow(entry.sizeBytes));
      this.#memory.set(name, bytes);
      return { bytes };
    } catch {
      // Removed by hand: it is made again.
      this.#disk.delete(name);
      return undefined;
    }
  }

  /** The file of a result, for those who read it themselves. */
  async file(name: string): Promise<string | undefined> {
    if ((await this.#use(name)) === undefined) return undefined;
    const path = this.path(name);
    if (existsSync(path)) return path;
    this.#disk.delete(name);
    return undefined;
  }

  async #use(name: string): Promise<Entry | undefined> {
    await this.#load();
    const entry = this.#disk.get(name);
    if (entry !== undefined && entry.touchedAt < Date.now() - touchIntervalMs) {
      entry.touchedAt = Date.now();
      const now = new Date();
      utimes(this.path(name), now, now).catch(() => {}); // only the order of use after a restart is lost
    }
    return entry;
  }

  async #lend(name: string, sizeBytes: number): Promise<Stored> {
    const lent = this.#borrow(sizeBytes);
    try {
      await this.#read(name, lent.bytes);
      return lent;
    } catch (error) {
      lent.release();
      throw error;
    }
  }

  /**
   * What was written a moment ago is in the system's memory: nobody waits for it. Most results are asked for once, and
   * only who is asked for again takes a place in ours, where new buffers cost a collection of everything after a few hundred.
   */
  #lendNew(name: string, entry: Entry): Stored {
    entry.isNew = false;
    const file = openSync(this.path(name), "r");
    const lent = this.#borrow(entry.sizeBytes);
    try {
      if (readSync(file, lent.bytes, 0, entry.sizeBytes, 0) < entry.sizeBytes) throw tooShort();
      return lent;
    } catch (error) {
      lent.release();
      throw error;
    } finally {
      closeSync(file);
    }
  }

  /** When all are out, with visitors who read slowly perhaps, nobody holds more than what he reads. */
  #borrow(sizeBytes: number): { bytes: Buffer; release: () => void } {
    let whole = this.#free.pop();
    if (whole === undefined) {
      if (this.#lendable === lendableMax)
        return { bytes: Buffer.allocUnsafeSlow(sizeBytes), release: () => {} };
      this.#lendable += 1;
      whole = Buffer.allocUnsafeSlow(readBytesMax);
    }
    const back = whole;
    return { bytes: back.subarray(0, sizeBytes), release: () => void this.#free.push(back) };
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

  /** Takes over what has been written to its path, as long as `isWanted` holds: its source may have been deleted meanwhile. */
  adopt(name: string, sizeBytes: number, isWanted: () => boolean): void {
    this.#disk.set(name, { sizeBytes, touchedAt: Date.now(), isNew: true });
    if (!isWanted()) this.#disk.delete(name);
  }

  /** Takes in what could not be written. */
  hold(name: string, bytes: Buffer, isWanted: () => boolean): Stored {
    if (isWanted()) this.#memory.set(name, bytes);
    return { bytes };
  }

  /** Forgets everything that was made from an image. */
  async purge(folder: string): Promise<void> {
    for (const name of [...this.#memory.keys()]) if (name.startsWith(`${folder}/`)) this.#memory.delete(name);
    await this.#load();
    for (const name of [...this.#disk.keys()]) if (name.startsWith(`${folder}/`)) this.#disk.delete(name);
    await rm(this.path(folder), { recursive: true, force: true });
  }

  /** Where a result is to lie. */
  path(name: string): string {
    return `${this.#options.folder}/${name.slice(0, 2)}/${name}`;
  }

  /** Finds, once, what an earlier process has left. Tried again when that fails. */
  async #load(): Promise<void> {
    this.#loaded ??= this.#find().catch((error: unknown) => {
      this.#loaded = undefined;
      throw error;
    });
    return this.#loaded;
  }

  /** The longest unused first. */
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

const tooShort = (): Error => new Error("the file is shorter than it was");
