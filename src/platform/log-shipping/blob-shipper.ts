import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { open } from "node:fs/promises";
import type { Archive, Part } from "../storage/archive/archive.ts";
import { writeLines } from "../storage/archive/parts.ts";
import type { FileBlobs } from "../storage/blobs.ts";
import { missing } from "../storage/blobs/incoming.ts";
import { blobsFolder } from "./chain.ts";
import type { LinkedBlobs } from "./linked-blobs.ts";

const pathPattern = /^log\/blobs\/(.+)@([\da-f]{64})$/;

/** The key and the digest of a shipped blob; undefined for other files. */
export function parseBlobPath(path: string): { key: string; digest: string } | undefined {
  const [, key, digest] = pathPattern.exec(path) ?? [];
  return key === undefined ? undefined : { key, digest: digest! };
}

/**
 * Copies blobs to the target. Content is never replaced, so each key is copied once; its path there has the digest
 * of its content.
 */
export class BlobShipper {
  readonly #blobs: FileBlobs;
  readonly #links: LinkedBlobs;
  readonly #files: Archive;
  /** Keys that are at the target. */
  #shipped: Set<string> | undefined;
  #waiting = new Set<string>();

  constructor(blobs: FileBlobs, links: LinkedBlobs, files: Archive) {
    this.#blobs = blobs;
    this.#links = links;
    this.#files = files;
  }

  /** Notes that a blob was stored, for the next `ship`. */
  note(key: string): void {
    this.#waiting.add(key);
  }

  /** Copies all blobs that were noted before the call. The first call copies all existing blobs. */
  async ship(): Promise<void> {
    const shipped = (this.#shipped ??= await this.#begin());
    for (const key of this.#waiting) {
      if (!shipped.has(key)) await this.#copy(key);
      shipped.add(key);
      this.#waiting.delete(key);
      await this.#links.remove(key);
    }
  }

  /** Writes the list of all blobs that exist. */
  async writeList(path: string): Promise<Part> {
    const { rows: _, ...part } = await writeLines(this.#files, path, this.#lines());
    return part;
  }

  /** Removes shipped blobs that were written before a time, except `kept` ones and those that still exist here. */
  async removeOld(writtenBeforeMs: number, kept: ReadonlySet<string>): Promise<void> {
    const now = Date.now();
    for await (const { path, ageMs } of this.#files.list(blobsFolder)) {
      const key = parseBlobPath(path)?.key;
      if (key === undefined || kept.has(key) || now - ageMs >= writtenBeforeMs) continue;
      if ((await this.#blobs.head(key)) !== undefined) continue;
      await this.#files.remove(path);
      this.#shipped?.delete(key);
    }
  }

  async #begin(): Promise<Set<string>> {
    const shipped = new Set<string>();
    for await (const { path } of this.#files.list(blobsFolder)) {
      const key = parseBlobPath(path)?.key;
      if (key !== undefined) shipped.add(key);
    }
    for (const key of await this.#links.keys()) this.#waiting.add(key);
    for await (const { key } of this.#blobs.list()) this.#waiting.add(key);
    return shipped;
  }

  /** Copies a blob unless it was deleted. Reads it twice, because its path at the target has its digest. */
  async #copy(key: string): Promise<void> {
    const path = existsSync(this.#links.path(key)) ? this.#links.path(key) : this.#blobs.path(key);
    const file = await open(path).catch(missing);
    if (file === undefined) return;
    try {
      const hash = createHash("sha256");
      const read = (): AsyncIterable<Buffer> =>
        file.createReadStream({ start: 0, autoClose: false }) as AsyncIterable<Buffer>;
      for await (const chunk of read()) hash.update(chunk);
      await this.#files.write(`${blobsFolder}${key}@${hash.digest("hex")}`, read());
    } finally {
      await file.close();
    }
  }

  async *#lines(): AsyncGenerator<string> {
    for await (const { key } of this.#blobs.list()) yield `${key}\n`;
  }
}
