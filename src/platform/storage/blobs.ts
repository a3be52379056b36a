import { randomUUID } from "node:crypto";
import { mkdir, open, readdir, rename, rm, stat, statfs, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { isDiskFull } from "./faults.ts";

/** Immutable content by key. Keys have the form `a/b/c`, of letters, digits, `-`, `_` and `.`. */
export interface Blobs {
  /** Durable when it resolves. A second `put` of a key replaces the content for later readers. */
  put(key: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<{ sizeBytes: number }>;
  /** Undefined if there is no content. `end` is the last byte, inclusive, as in a range request. */
  get(key: string, range?: { start: number; end: number }): Promise<Blob | undefined>;
  head(key: string): Promise<{ sizeBytes: number } | undefined>;
  /** Succeeds if there is no content, too. */
  delete(key: string): Promise<void>;
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
}

export interface Blob {
  /** Size of the whole content, regardless of the range. */
  sizeBytes: number;
  stream: Readable;
}

const keysAtOnce = 500;
/** With less free space than this, the disk counts as full. */
const trialBytes = 256 * 1024;
/** Unreferenced content older than this cannot belong to an upload in progress. */
export const orphanAgeMs = 24 * 60 * 60 * 1000;
const keyPattern = /^(?!\.)[\w.-]{1,255}(\/(?!\.)[\w.-]{1,255}){0,7}$/;

/** Blobs as files in a folder. Files are written elsewhere, flushed, and then renamed. */
export class FileBlobs implements Blobs {
  readonly #folder: string;
  /** The size of the last content that failed for lack of space; undefined while there is space. */
  #refusedBytes: number | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async put(key: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<{ sizeBytes: number }> {
    const path = this.path(key);
    const temporary = join(this.#folder, "incoming", randomUUID());
    let sizeBytes = 0;
    try {
      await Promise.all([
        mkdir(dirname(path), { recursive: true, mode: 0o700 }),
        mkdir(dirname(temporary), { recursive: true, mode: 0o700 }),
      ]);
      const file = await open(temporary, "wx", 0o600);
      try {
        for await (const chunk of content instanceof Uint8Array ? [content] : content) {
          sizeBytes += chunk.length;
          await file.appendFile(chunk);
        }
        await file.datasync();
      } finally {
        await file.close();
      }
      await rename(temporary, path);
    } catch (error) {
      if (isDiskFull(error)) this.#refusedBytes = sizeBytes;
      await rm(temporary, { force: true });
      throw error;
    }
    await syncFolder(dirname(path));
    return { sizeBytes };
  }

  /** Rejects while the disk lacks space for the content that failed last, or for any content. */
  async check(): Promise<void> {
    const folder = join(this.#folder, "incoming");
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const { bavail, bsize } = await statfs(folder);
    const neededBytes = (this.#refusedBytes ?? 0) + trialBytes;
    if (bavail * bsize < neededBytes)
      throw new Error(`Expected ${neededBytes} bytes of free disk space but there are ${bavail * bsize}`);
    if (this.#refusedBytes === undefined) return;
    // Some limits, such as quotas, only appear in a write.
    const trial = join(folder, randomUUID());
    try {
      await writeFile(trial, Buffer.alloc(trialBytes), { mode: 0o600, flush: true });
    } finally {
      await rm(trial, { force: true });
    }
    this.#refusedBytes = undefined;
  }

  async get(key: string, range?: { start: number; end: number }): Promise<Blob | undefined> {
    const file = await open(this.path(key)).catch(missing);
    if (file === undefined) return undefined;
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

  /** The folders directly below a prefix. */
  async folders(prefix: string): Promise<string[]> {
    return (await readdir(this.path(prefix)).catch(missing)) ?? [];
  }

  /** Deletes all content whose key begins with the prefix and a slash. */
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

  /** Removes partial files of writers that died. */
  async removeAbandoned(untouchedSince: number): Promise<void> {
    const folder = join(this.#folder, "incoming");
    for (const name of (await readdir(folder).catch(missing)) ?? []) {
      const found = await stat(join(folder, name)).catch(missing);
      if (found !== undefined && found.mtimeMs < untouchedSince)
        await rm(join(folder, name), { force: true });
    }
  }

  /** The path of the file, for callers that map or stream it themselves. */
  path(key: string): string {
    if (!keyPattern.test(key)) throw new Error(`not a blob key: ${JSON.stringify(key)}`);
    return join(this.#folder, key);
  }
}

/** Flushes a folder, which makes renames in it durable. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code === "ENOENT") return undefined;
  throw error;
}
