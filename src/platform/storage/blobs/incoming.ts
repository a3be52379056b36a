import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, readdir, rm, stat, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isDiskFull } from "../faults.ts";

/** With less free space than this, the disk counts as full. */
const trialBytes = 256 * 1024;

/** Writes files that are not complete yet, and notices a full disk. */
export class Incoming {
  readonly #folder: string;
  /** The size of the last content that failed for lack of space; undefined while there is space. */
  #refusedBytes: number | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Writes content to a new file, which the caller renames or removes. `seen` gets each chunk before it is
   * written. After a failure there is no file.
   */
  async write(
    content: Uint8Array | AsyncIterable<Uint8Array>,
    { isDurable, seen }: { isDurable: boolean; seen?: (chunk: Uint8Array) => void },
  ): Promise<{ path: string; sizeBytes: number }> {
    const path = join(this.#folder, randomUUID());
    let sizeBytes = 0;
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      const file = await open(path, "wx", 0o600);
      try {
        for await (const chunk of content instanceof Uint8Array ? [content] : content) {
          seen?.(chunk);
          sizeBytes += chunk.length;
          await file.appendFile(chunk);
        }
        if (isDurable) await file.datasync();
      } finally {
        await file.close();
      }
      return { path, sizeBytes };
    } catch (error) {
      if (isDiskFull(error)) this.#refusedBytes = sizeBytes;
      await rm(path, { force: true });
      throw error;
    }
  }

  /** As `write`, with the digest of the content. */
  async writeHashed(
    content: AsyncIterable<Uint8Array>,
    bytesMax: { bytes: number; tooLarge: () => Error },
  ): Promise<{ path: string; sizeBytes: number; sha256: string }> {
    const hash = createHash("sha256");
    let length = 0;
    const seen = (chunk: Uint8Array): void => {
      length += chunk.length;
      if (length > bytesMax.bytes) throw bytesMax.tooLarge();
      hash.update(chunk);
    };
    return { ...(await this.write(content, { isDurable: false, seen })), sha256: hash.digest("hex") };
  }

  /** Rejects while the disk lacks space for the content that failed last, or for any content. */
  async check(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const { bavail, bsize } = await statfs(this.#folder);
    const neededBytes = (this.#refusedBytes ?? 0) + trialBytes;
    if (bavail * bsize < neededBytes)
      throw new Error(`Expected ${neededBytes} bytes of free disk space but there are ${bavail * bsize}`);
    if (this.#refusedBytes === undefined) return;
    // Some limits, such as quotas, only appear in a write.
    const trial = join(this.#folder, randomUUID());
    try {
      await writeFile(trial, Buffer.alloc(trialBytes), { mode: 0o600, flush: true });
    } finally {
      await rm(trial, { force: true });
    }
    this.#refusedBytes = undefined;
  }

  /** Removes partial files of dead writers. */
  async removeAbandoned(untouchedSince: number): Promise<void> {
    for (const name of (await readdir(this.#folder).catch(missing)) ?? []) {
      const found = await stat(join(this.#folder, name)).catch(missing);
      if (found !== undefined && found.mtimeMs < untouchedSince)
        await rm(join(this.#folder, name), { force: true });
    }
  }
}

export function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code === "ENOENT") return undefined;
  throw error;
}
