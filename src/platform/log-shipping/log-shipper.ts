import { randomBytes } from "node:crypto";
import { createReadStream, rmSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { backup, type DatabaseSync } from "node:sqlite";
import type { Archive, Part } from "../storage/archive/archive.ts";
import { compressed, readLines, writePart } from "../storage/archive/parts.ts";
import { programVersion } from "../storage/program-version.ts";
import type { BlobShipper } from "./blob-shipper.ts";
import { chainNames, chainPath, readChain, removeChain, writeChain, type Chain } from "./chain.ts";
import { LogLost, type LogCopier } from "./log-copier.ts";
import type { Position } from "./segment.ts";
import type { Spool } from "./spool.ts";

export interface ShipperOptions {
  copier: LogCopier;
  spool: Spool;
  /** Undefined if the blobs are not in the data folder. */
  blobs: BlobShipper | undefined;
  files: Archive;
  /** The value of `backup-folder`. */
  target: string;
  dataDir: string;
  keepMs: number;
  report: (report: Report) => void;
}
export interface Report {
  /** Wall-clock time until which all commits are at the target. */
  shippedMs?: number;
  error?: unknown;
}

const chainMs = 24 * 60 * 60 * 1000;
const retryMs = 5000;
/** When more waits for an unreachable target, the chain is given up. */
const spoolBytesMax = 1024 * 1024 * 1024;
const pagesAtOnce = 1000;
const fileFolders = ["tls"];

/** Ships the log: begins chains, copies new frames, and sends segments after the blobs that their rows name. */
export class LogShipper {
  readonly #options: ShipperOptions;
  #working: Promise<void> | undefined;
  #failedAt = -Infinity;

  constructor(options: ShipperOptions) {
    this.#options = options;
    const state = options.spool.readState();
    const isOwn = state?.isComplete === true && state.target === options.target;
    if (!isOwn || !options.copier.resume(state)) this.#forget();
  }

  /** Copies new frames, and begins to send them unless a previous call is still sending. */
  tick(): void {
    this.#copy();
    const isWaiting = performance.now() - this.#failedAt < retryMs;
    if (this.#working === undefined && !isWaiting)
      this.#working = this.#work().finally(() => (this.#working = undefined));
  }

  /** Copies and sends everything that is left. Sends nothing more after a failure. */
  async end(): Promise<void> {
    await this.#working;
    this.#copy();
    await this.#send().catch(() => {}); // the next start continues
  }

  #copy(): void {
    const { copier, spool, report } = this.#options;
    try {
      if (spool.bytes > spoolBytesMax) throw new LogLost("The target could not be reached for too long");
      copier.copy();
    } catch (error) {
      report({ error });
      this.#giveUp();
    }
  }

  /** Gives up the chain. The next one begins with a new copy of the database. */
  #giveUp(): void {
    const { copier, spool } = this.#options;
    const chain = copier.state?.chain;
    copier.drop();
    if (chain !== undefined && spool.bytes > spoolBytesMax) spool.clear(chain);
    else this.#forget();
  }

  /**
   * Removes waiting segments, except those of a complete chain: without its copy of the database, others are
   * useless.
   */
  #forget(): void {
    const { spool } = this.#options;
    const state = spool.readState();
    if (state?.isComplete === true && state.target === this.#options.target) return;
    spool.clear();
  }

  async #work(): Promise<void> {
    const { copier, report } = this.#options;
    try {
      await this.#send();
      const state = copier.state;
      const isOld = state !== undefined && Math.abs(Date.now() - state.startedMs) > chainMs;
      if (state?.isComplete !== true || isOld) await this.#begin();
    } catch (error) {
      // A lost log is no error of the target: the next call tries again.
      if (!(error instanceof LogLost)) this.#failedAt = performance.now();
      report({ error });
    }
  }

  /** Sends all segments of complete chains, in order. */
  async #send(): Promise<void> {
    const { copier, spool, blobs, files, report } = this.#options;
    const copiedMs = Date.now();
    const current = copier.state;
    const segments = spool.segments();
    if (segments.length > 0 || current?.isComplete === false) await blobs?.ship();
    for (const { chain, name, path } of segments) {
      await files.write(`${chainPath(chain)}segments/${name}`, chunksOf(await readFile(path)));
      spool.remove(path);
    }
    if (current?.isComplete === true && copier.state?.chain === current.chain)
      report({ shippedMs: copiedMs });
  }

  /** Begins a chain, and removes old chains that are no longer needed. */
  async #begin(): Promise<void> {
    const { copier, files, target, spool, report } = this.#options;
    const names = await chainNames(files);
    const next = Math.max(0, ...names.map((name) => Number(name.slice(0, 8)))) + 1;
    const name = `${String(next).padStart(8, "0")}-${randomBytes(4).toString("hex")}`;
    const startedMs = Date.now();
    const { database, at } = copier.begin(name, target);
    try {
      const chain = await this.#writeBase(name, { database, at, startedMs });
      if (copier.state?.chain !== name) return; // the chain was given up meanwhile
      await writeChain(files, name, chain);
      copier.complete();
      report({ shippedMs: startedMs });
    } catch (error) {
      copier.drop();
      spool.clear(name);
      throw error;
    } finally {
      if (database.isOpen) database.close();
    }
    await this.#removeOld();
  }

  async #writeBase(
    name: string,
    { database, at, startedMs }: { database: DatabaseSync; at: Position; startedMs: number },
  ): Promise<Chain> {
    const { copier, spool, blobs, files } = this.#options;
    const copy = join(spool.folder, "base.db");
    rmSync(copy, { force: true });
    try {
      await backup(database, copy, { rate: pagesAtOnce });
      database.close(); // ends its read transaction, so that checkpoints can proceed
      const path = chainPath(name);
      const base = await writePart(files, `${path}base.zst`, compressed(createReadStream(copy)));
      await blobs?.ship();
      const list = await (blobs?.writeList(`${path}blobs.zst`) ??
        writePart(files, `${path}blobs.zst`, compressed(chunksOf(Buffer.alloc(0)))));
      const fields = {
        format: 1 as const,
        writtenBy: programVersion,
        startedMs,
        pageBytes: copier.pageBytes,
      };
      return { ...fields, base, at, files: await this.#writeFiles(path), blobs: list };
    } finally {
      rmSync(copy, { force: true });
    }
  }

  async #writeFiles(chain: string): Promise<Part[]> {
    const { files, dataDir } = this.#options;
    const parts: Part[] = [];
    for (const folder of fileFolders) {
      const entries = await readdir(join(dataDir, folder), { withFileTypes: true }).catch(() => []);
      for (const { name } of entries.filter((each) => each.isFile())) {
        const content = createReadStream(join(dataDir, folder, name));
        parts.push(await writePart(files, `${chain}files/${folder}/${name}`, content));
      }
    }
    return parts;
  }

  /** Removes chains whose last commit is older than the time to keep, and blobs that no kept chain needs. */
  async #removeOld(): Promise<void> {
    const { files, keepMs, blobs, copier } = this.#options;
    const keptSinceMs = Date.now() - keepMs;
    const chains: { name: string; chain: Chain | undefined }[] = [];
    for (const name of await chainNames(files))
      chains.push({ name, chain: await readChain(files, name).catch(() => undefined) });
    const complete = chains.filter((each) => each.chain !== undefined);
    const isOver = (index: number): boolean => {
      const next = complete[index + 1];
      return next !== undefined && next.chain!.startedMs < keptSinceMs;
    };
    const oldest = complete.findIndex((_, index) => !isOver(index));
    const first = complete[oldest]!;
    for (const { name } of chains)
      if (name < first.name && name !== copier.state?.chain) await removeChain(files, name);
    if (blobs === undefined) return;
    const kept = new Set<string>();
    for await (const key of readLines(files, first.chain!.blobs)) kept.add(key);
    await blobs.removeOld(first.chain!.startedMs, kept);
  }
}

async function* chunksOf(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
