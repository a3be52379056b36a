import { randomUUID } from "node:crypto";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";

/** Content by key, written once and whole. Keys are `a/b/c` of letters, digits, `-`, `_` and `.`. */
export interface Blobs {
  /** Durable when it resolves. A second `put` of a key replaces the first for readers to come. */
  put(key: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<{ sizeBytes: number }>;
  /** Undefined where there is none. `end` is the last byte, as in a range request. */
  get(key: string, range?: { start: number; end: number }): Promise<Blob | undefined>;
  head(key: string): Promise<{ sizeBytes: number } | undefined>;
  /** Also when there is none. */
  delete(key: string): Promise<void>;
  /**
   * Removes content under a prefix that nothing names, as a process leaves it that dies between writing and naming. `named`
   * tells which of some keys of a folder are named; what was written after a time may be about to be. Answers with the count.
   */
  removeUnnamed(
    prefix: string,
    writtenBefore: number,
    named: (keys: readonly string[]) => Promise<ReadonlySet<string>>,
  ): Promise<number>;
}

export interface Blob {
  /** Of the whole content, whatever the range. */
  sizeBytes: number;
  stream: Readable;
}

const keysAtOnce = 500;
/** Content that is older than this and that nothing names is of no upload under way. */
export const orphanAgeMs = 24 * 60 * 60 * 1000;
const keyPattern = /^(?!\.)[\w.-]{1,255}(\/(?!\.)[\w.-]{1,255}){0,7}$/;

/** Blobs as files of a folder: written beside their place, flushed, and renamed into it. */
export class FileBlobs implements Blobs {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async put(key: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<{ sizeBytes: number }> {
    const path = this.path(key);
    const temporary = join(this.#folder, "incoming", randomUUID());
    await Promise.all([
      mkdir(dirname(path), { recursive: true }),
      mkdir(dirname(temporary), { recursive: true }),
    ]);
    let sizeBytes = 0;
    try {
      const file = await open(temporary, "wx", 0o600);
      try {
        for await (const chunk of content instanceof Uint8Array ? [content] : content) {
          await file.appendFile(chunk);
          sizeBytes += chunk.length;
        }
        await file.datasync();
      } finally {
        await file.close();
      }
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
    await syncFolder(dirname(path));
    return { sizeBytes };
  }

  async get(key: string, range?: { start: number; end: number }): Promise<Blob | undefined> {
    const file = await open(this.path(key)).catch(missing);
    if (file === undefined) return undefined;
    try {
      const { size } = await file.stat();
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

  /** The first parts of keys that follow a prefix. */
  async folders(prefix: string): Promise<string[]> {
    return (await readdir(this.path(prefix)).catch(missing)) ?? [];
  }

  /** Everything whose key begins with the prefix and a slash. */
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

  /** Removes what writers have left that died before their end. */
  async removeAbandoned(untouchedSince: number): Promise<void> {
    const folder = join(this.#folder, "incoming");
    for (const name of (await readdir(folder).catch(missing)) ?? []) {
      const found = await stat(join(folder, name)).catch(missing);
      if (found !== undefined && found.mtimeMs < untouchedSince)
        await rm(join(folder, name), { force: true });
    }
  }

  /** Where the content lies, for those who map or stream the file itself. */
  path(key: string): string {
    if (!keyPattern.test(key)) throw new Error(`not a blob key: ${JSON.stringify(key)}`);
    return join(this.#folder, key);
  }
}

/** A rename is durable once its folder is. */
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
