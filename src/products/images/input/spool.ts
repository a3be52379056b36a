import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { ofWriting } from "../errors.ts";
import { checkSize, type MoreFormats, type Probe } from "../image.ts";
import { probe } from "./probe.ts";
import { checkedImage } from "./format-check.ts";

export interface Spooled {
  path: string;
  probe: Probe;
  sizeBytes: number;
}

/** Images of one request, in temporary files that are deleted with it. */
export class UploadSpool {
  readonly #folder: string;
  readonly #more: MoreFormats;
  #made: Promise<void> | undefined;

  constructor(folder: string, more: MoreFormats) {
    this.#folder = folder;
    this.#more = more;
  }

  /** First deletes files that a killed process left behind. Retried after a failure. */
  async #make(): Promise<void> {
    try {
      await rm(this.#folder, { recursive: true, force: true });
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    } catch (error) {
      this.#made = undefined;
      throw ofWriting(error);
    }
  }

  async use<T>(
    work: (receive: (source: AsyncIterable<Uint8Array>) => Promise<Spooled>) => Promise<T>,
  ): Promise<T> {
    const paths: string[] = [];
    await (this.#made ??= this.#make());
    try {
      return await work(async (source) => {
        const path = join(this.#folder, randomUUID());
        paths.push(path);
        let sizeBytes = 0;
        const file = createWriteStream(path, { mode: 0o600, flags: "wx" });
        await pipeline(
          checkedImage(source, this.#more, (chunk) => (sizeBytes += chunk.length)),
          file,
        );
        const found = await probe(path);
        checkSize(found);
        return { path, probe: found, sizeBytes };
      });
    } catch (error) {
      throw ofWriting(error);
    } finally {
      await Promise.all(paths.map((path) => rm(path, { force: true })));
    }
  }
}
