import { randomBytes } from "node:crypto";
import { orphanAgeMs } from "../blobs.ts";
import type { S3Store } from "../blobs/s3-store.ts";
import { S3Fault } from "../blobs/s3-xml.ts";
import type { Archive, ArchivedFile, ArchiveStore, ListedFile, NewArchive } from "./archive.ts";
import { BackupError } from "./errors.ts";
import { removeAll } from "./remove-all.ts";
import {
  contentStream,
  digestFile,
  digestLine,
  manifestFile,
  openArchive,
  runOf,
  runPattern,
  readText,
} from "./manifest-files.ts";

/** Objects below a prefix. */
export class S3Archive implements Archive {
  readonly shown: string;
  readonly #store: S3Store;
  /** "" or a text that ends in a slash. */
  readonly #prefix: string;

  constructor(store: S3Store, shown: string, prefix: string) {
    this.#store = store;
    this.shown = shown;
    this.#prefix = prefix;
  }

  async write(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    await this.#store.putStream(this.#prefix + path, content);
  }

  async read(path: string): Promise<ArchivedFile | undefined> {
    return this.#store.get(this.#prefix + path);
  }

  async remove(path: string): Promise<void> {
    await this.#store.delete(this.#prefix + path);
  }

  async *list(prefix: string): AsyncGenerator<ListedFile> {
    for await (const { key, ...metadata } of this.#store.list(this.#prefix + prefix))
      yield { path: key.slice(this.#prefix.length), ...metadata };
  }

  async folders(prefix: string): Promise<string[]> {
    return this.#store.folders(this.#prefix + prefix);
  }
}

/**
 * A prefix of a bucket with backups, each below its name. S3 has no rename: an attempt writes its files below
 * `NAME/run-…/`, and then the manifest, which names the attempt. So attempts do not disturb each other, and an
 * archive without a manifest is no backup.
 */
export class S3ArchiveStore implements ArchiveStore {
  readonly shown: string;
  readonly files: Archive;
  readonly #store: S3Store;

  /** `shown` is the URL without parameters. */
  constructor(store: S3Store, shown: string) {
    this.#store = store;
    this.shown = shown;
    this.files = new S3Archive(store, shown, "");
  }

  async begin(name: string): Promise<NewArchive> {
    const files = this.#archive(name);
    await this.#store.check();
    if ((await this.#store.head(`${name}/${manifestFile}`)) !== undefined)
      throw new BackupError(`Expected no backup at ${files.shown}. Give each backup a name of its own.`);
    await this.#removeAbandoned();
    const run = `run-${randomBytes(8).toString("hex")}`;
    const runFiles = this.#archive(`${name}/${run}`);
    return {
      files: runFiles,
      complete: async (manifest) => {
        const named = `${JSON.stringify({ run, ...(JSON.parse(manifest) as object) }, null, 2)}\n`;
        await runFiles.write(digestFile, contentStream(digestLine(named)));
        // Of two attempts the first one wins. A server without preconditions keeps the last one, which is
        // complete too.
        await this.#store
          .putStream(`${name}/${manifestFile}`, contentStream(named), { isNew: true })
          .catch(async (error: unknown) => {
            if (!(error instanceof S3Fault) || error.status !== 412) throw error;
            // An earlier try may have written the manifest, and its response was lost.
            if ((await readText(files, manifestFile)) === named) return;
            throw new BackupError(`Another backup was written to ${files.shown} meanwhile.`);
          });
      },
      discard: async () => removeAll(runFiles, ""),
    };
  }

  async open(name: string): Promise<{ files: Archive; manifest: string }> {
    return openArchive(this.#archive(name), (run) => this.#archive(`${name}/${run}`));
  }

  async names(): Promise<string[]> {
    const names: string[] = [];
    for (const name of await this.files.folders(""))
      if ((await this.#store.head(`${name}/${manifestFile}`)) !== undefined) names.push(name);
    return names;
  }

  /** Removes the manifest first, so that an interrupted removal leaves nothing that looks complete. */
  async remove(name: string): Promise<void> {
    const files = this.#archive(name);
    await files.remove(manifestFile);
    await removeAll(files, "");
  }

  async removeAttempts(name: string): Promise<void> {
    const manifest = await readText(this.#archive(name), manifestFile);
    if (manifest === undefined) await removeAll(this.#archive(name), "");
  }

  async close(): Promise<void> {
    await this.#store.close();
  }

  #archive(path: string): Archive {
    return new S3Archive(this.#store, `${this.shown}/${path}`, `${path}/`);
  }

  /** Removes the files of killed attempts: runs that no manifest names and that are older than a day. */
  async #removeAbandoned(): Promise<void> {
    await this.#store.removeAbandoned(orphanAgeMs);
    for (const name of await this.files.folders("")) {
      const runs = (await this.files.folders(`${name}/`)).filter((each) => runPattern.test(each));
      if (runs.length === 0) continue;
      const manifest = await readText(this.#archive(name), manifestFile);
      const current = manifest && runOf(manifest);
      for (const run of runs) if (run !== current) await this.#removeIfOld(`${name}/${run}/`);
    }
  }

  async #removeIfOld(prefix: string): Promise<void> {
    for await (const { ageMs } of this.files.list(prefix)) if (ageMs < orphanAgeMs) return;
    await removeAll(this.files, prefix);
  }
}
