import { createHash } from "node:crypto";
import { createReadStream, rmSync } from "node:fs";
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { LRUCache } from "lru-cache";
import type { BlobFile } from "../blobs.ts";
import { missing } from "./incoming.ts";
import { sha256 } from "./signature.ts";

/** A lease of a cached file. */
export interface CachedFile extends BlobFile {
  sizeBytes: number;
}

interface CachedBlob {
  name: string;
  /** The digest of the content, in hex. */
  digest: string;
  sizeBytes: number;
  /** The file's modification time when its digest was last confirmed; undefined before. */
  confirmedMtimeMs: number | undefined;
  leases: number;
  isEvicted: boolean;
}

const namePattern = /^([\da-f]{64})\.([\da-f]{64})$/;

/**
 * Copies of blobs in local files, limited in bytes; the least recently used is removed first. A file has the
 * digest of its content in its name. A file is served only after its content was compared with the digest: by
 * the caller at adoption, and again after a restart or when the file has been written to.
 */
export class BlobCache {
  readonly #folder: string;
  readonly #entries: LRUCache<string, CachedBlob>;
  #loaded: Promise<void> | undefined;

  constructor(folder: string, bytesMax: number) {
    this.#folder = folder;
    this.#entries = new LRUCache({
      maxSize: bytesMax,
      sizeCalculation: ({ sizeBytes }) => Math.max(1, sizeBytes),
      dispose: (entry, _id, reason) => {
        if (reason !== "set") this.#evict(entry);
      },
    });
  }

  /** Bytes of all cached files. */
  get bytes(): number {
    return this.#entries.calculatedSize;
  }

  /** A cached file whose content is confirmed; undefined if there is none. */
  async lease(key: string): Promise<CachedFile | undefined> {
    await this.#load();
    const id = sha256(key);
    const entry = this.#entries.get(id);
    if (entry === undefined) return undefined;
    const lease = this.#lease(entry);
    if (await this.#isConfirmed(entry)) return lease;
    if (this.#entries.peek(id) === entry) this.#entries.delete(id);
    lease.release();
    return undefined;
  }

  /** Takes over a file whose content has this digest. Returns `count` leases of it. */
  async adopt(
    key: string,
    file: { path: string; sizeBytes: number; sha256: string },
    count: () => number,
  ): Promise<CachedFile> {
    await this.#load();
    const id = sha256(key);
    const name = `${id}.${file.sha256}`;
    const path = this.#path(name);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await rename(file.path, path);
    const { mtimeMs } = await stat(path);
    const { sha256: digest, sizeBytes } = file;
    const entry = {
      name,
      digest,
      sizeBytes,
      confirmedMtimeMs: mtimeMs,
      leases: count(),
      isEvicted: false,
    };
    if (this.#entries.peek(id)?.name !== name) this.#entries.delete(id); // with its file
    this.#entries.set(id, entry);
    // The cache does not keep a file that is larger than the whole cache.
    if (!this.#entries.has(id)) this.#evict(entry);
    return this.#leaseOf(entry);
  }

  async forget(key: string): Promise<void> {
    await this.#load();
    this.#entries.delete(sha256(key));
  }

  #lease(entry: CachedBlob): CachedFile {
    entry.leases += 1;
    return this.#leaseOf(entry);
  }

  #leaseOf(entry: CachedBlob): CachedFile {
    const release = (): void => {
      entry.leases -= 1;
      if (entry.isEvicted && entry.leases === 0) this.#remove(entry);
    };
    return { path: this.#path(entry.name), sizeBytes: entry.sizeBytes, release };
  }

  #evict(entry: CachedBlob): void {
    entry.isEvicted = true;
    if (entry.leases === 0) this.#remove(entry);
  }

  #remove(entry: CachedBlob): void {
    const current = this.#entries.peek(entry.name.slice(0, 64));
    // The file can be that of a later entry with the same key and content.
    if (current === entry || current?.name !== entry.name) rmSync(this.#path(entry.name), { force: true });
  }

  async #isConfirmed(entry: CachedBlob): Promise<boolean> {
    const path = this.#path(entry.name);
    const found = await stat(path).catch(missing);
    if (found === undefined || found.size !== entry.sizeBytes) return false;
    if (found.mtimeMs === entry.confirmedMtimeMs) return true;
    const hash = createHash("sha256");
    for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) hash.update(chunk);
    if (hash.digest("hex") !== entry.digest) return false;
    entry.confirmedMtimeMs = found.mtimeMs;
    return true;
  }

  #path(name: string): string {
    return join(this.#folder, name.slice(0, 2), name);
  }

  /** Finds, once, the files of an earlier process. Retried after a failure. */
  async #load(): Promise<void> {
    this.#loaded ??= this.#find().catch((error: unknown) => {
      this.#loaded = undefined;
      throw error;
    });
    return this.#loaded;
  }

  async #find(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const found: { id: string; digest: string; sizeBytes: number; usedAt: number }[] = [];
    for (const file of await readdir(this.#folder, { recursive: true, withFileTypes: true })) {
      if (!file.isFile()) continue;
      const path = join(file.parentPath, file.name);
      const [, id, digest] = namePattern.exec(file.name) ?? [];
      if (id === undefined || digest === undefined) {
        await rm(path, { force: true });
        continue;
      }
      const { size, mtimeMs } = await stat(path);
      found.push({ id, digest, sizeBytes: size, usedAt: mtimeMs });
    }
    for (const { id, digest, sizeBytes } of found.toSorted((a, b) => a.usedAt - b.usedAt)) {
      const name = `${id}.${digest}`;
      const entry: CachedBlob = {
        name,
        digest,
        sizeBytes,
        confirmedMtimeMs: undefined,
        leases: 0,
        isEvicted: false,
      };
      this.#entries.set(id, entry);
      if (!this.#entries.has(id)) this.#evict(entry);
    }
  }
}
