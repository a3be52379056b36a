import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { mebibyte } from "../../../platform/bytes.ts";
import { imageErrors, ofWriting } from "../errors.ts";
import { checkSize, type MoreFormats, type Probe } from "../image.ts";
import { probe } from "./probe.ts";
import { checkedImage } from "./format-check.ts";
import { InputShares } from "./input-shares.ts";

/** Temporary files of all accounts: twice the images of one request. */
const spoolBytesMax = 4096 * mebibyte;
const busySeconds = 10;

export interface Spooled {
  path: string;
  probe: Probe;
  sizeBytes: number;
}

/** Images of one request, in temporary files that are deleted with it. */
export class UploadSpool {
  readonly #folder: string;
  readonly #more: MoreFormats;
  readonly #shares: InputShares;
  #made: Promise<void> | undefined;

  constructor(folder: string, more: MoreFormats, bytesMax = spoolBytesMax) {
    this.#folder = folder;
    this.#more = more;
    this.#shares = new InputShares(bytesMax);
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

  /** Rejects if the images of all requests of an account exceed its share of the disk. */
  async use<T>(
    accountId: string,
    work: (receive: (source: AsyncIterable<Uint8Array>) => Promise<Spooled>) => Promise<T>,
  ): Promise<T> {
    const paths: string[] = [];
    let takenBytes = 0;
    const take = (bytes: number): void => {
      if (!this.#shares.take(accountId, bytes)) throw imageErrors.busy(busySeconds);
      takenBytes += bytes;
    };
    await (this.#made ??= this.#make());
    try {
      return await work(async (source) => {
        const path = join(this.#folder, randomUUID());
        paths.push(path);
        let sizeBytes = 0;
        const file = createWriteStream(path, { mode: 0o600, flags: "wx" });
        await pipeline(
          checkedImage(source, this.#more, (chunk) => {
            take(chunk.length);
            sizeBytes += chunk.length;
          }),
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
      this.#shares.give(accountId, takenBytes);
    }
  }
}
