import { link, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/**
 * Hard links to the files of blobs that wait to be shipped, which keep their content if the blobs are deleted
 * meanwhile.
 */
export class LinkedBlobs {
  readonly #folder: string;
  readonly #links: string;
  #isMade = false;

  /** `folder` has the blobs; `spool` is the folder of the log's spool. */
  constructor(folder: string, spool: string) {
    this.#folder = folder;
    this.#links = join(spool, "blobs");
  }

  /** Succeeds without a link if the file is gone. */
  async add(key: string): Promise<void> {
    if (!this.#isMade) await mkdir(this.#links, { recursive: true, mode: 0o700 });
    this.#isMade = true;
    await link(join(this.#folder, key), this.path(key)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST" && error.code !== "ENOENT") throw error;
    });
  }

  async keys(): Promise<string[]> {
    return (await readdir(this.#links).catch(() => [])).map(decodeURIComponent);
  }

  async remove(key: string): Promise<void> {
    await rm(this.path(key), { force: true });
  }

  path(key: string): string {
    return join(this.#links, encodeURIComponent(key));
  }
}
