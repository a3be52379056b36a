import type { Logger } from "pino";
import { orphanAgeMs, type Blobs } from "../../platform/storage/blobs.ts";
import { onOneNode } from "../../platform/storage/dialects.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { repeat } from "../../platform/util/repeat.ts";
import { files } from "./store.ts";
import * as store from "./store-unused.ts";
import { clock } from "../../platform/timers/clock.ts";

const everyMs = 60 * 60 * 1000;
const firstMs = 10 * 60 * 1000;
const manifestsAtOnce = 100;
const filesAtOnce = 500;

/**
 * Removes assets that no version of a script uses, some time after their last use. Sessions and tokens expire
 * earlier, so files of a running upload stay. One node runs it at a time.
 */
export class AssetCollector {
  readonly #storage: Storage;
  readonly #blobs: Blobs;
  readonly #retentionMs: number;

  constructor(storage: Storage, blobs: Blobs, options: { retentionMs: number }) {
    this.#storage = storage;
    this.#blobs = blobs;
    this.#retentionMs = options.retentionMs;
  }

  /** Starts it. Returns a function that stops it. */
  start(logger: Logger): () => Promise<void> {
    const collect = async (): Promise<void> => {
      const removed = await this.collect();
      if (removed > 0) logger.info({ files: removed }, "removed static assets that no script uses");
    };
    return repeat(collect, { everyMs, firstMs }, { logger, message: "removing unused assets failed" });
  }

  /** Returns the number of removed files. Does nothing while another node collects. */
  async collect(now = clock.now()): Promise<number> {
    return (await onOneNode(this.#storage, "assets", () => this.#collect(now))) ?? 0;
  }

  async #collect(now: number): Promise<number> {
    const usedBefore = now - this.#retentionMs;
    let removed = 0;
    for (;;) {
      const manifests = await store.unusedManifests(this.#storage.read, usedBefore, manifestsAtOnce);
      for (const manifest of manifests) removed += await this.#remove(manifest, usedBefore);
      if (manifests.length < manifestsAtOnce) break;
    }
    return removed + (await this.#removeUnnamed(now - orphanAgeMs));
  }

  async #remove(manifest: { id: string; scope: string }, usedBefore: number): Promise<number> {
    const { id, scope } = manifest;
    const { engine, read } = this.#storage;
    const hashes = await store.hashesOfNoOther(read, manifest);
    const blobKeys = await this.#storage.write(async (trx) => {
      const removed: string[] = [];
      if (!(await store.removeUnusedManifest(trx, id, usedBefore))) return removed;
      for (let at = 0; at < hashes.length; at += filesAtOnce) {
        const unused = { scope, hashes: hashes.slice(at, at + filesAtOnce), usedBefore };
        removed.push(...(await store.removeUnusedFiles(trx, engine, unused)));
      }
      return removed;
    });
    for (const blobKey of blobKeys) await this.#blobs.delete(blobKey);
    return blobKeys.length;
  }

  /** Removes blobs of a process that died between writing a file and its row. */
  async #removeUnnamed(writtenBefore: number): Promise<number> {
    return this.#blobs.removeUnnamed("assets", writtenBefore, async (keys) => {
      const [, scope] = keys[0]!.split("/");
      const hashes = keys.map((key) => key.slice(key.lastIndexOf("/") + 1).slice(0, 32));
      const held = await files(this.#storage.read, scope!, hashes);
      return new Set(held.map(({ blobKey }) => blobKey));
    });
  }
}
