import { readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { mebibyte } from "../../../platform/bytes.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";
import { fileOf, readSegmentName, type SpoolSegment } from "./segment-name.ts";
import { SegmentWriter, type SegmentLimits } from "./segment-writer.ts";
import { counted, SpoolShares, type SpoolOwner } from "./shares.ts";

/** A segment that waits for its upload. */
export interface ReadySegment extends SpoolSegment {
  path: string;
}

/** Maximum size of a segment, as a part of the spool. The room of a job has several. */
const segmentPart = 1 / 64;
const segmentBytesMin = 64 * 1024;
/** With so many files, a job begins a new one only when the last one is full. */
const filesMax = 64;
/** How long a measurement of the files on the disk stays valid. */
const measuredMs = 2000;
/** An older open segment counts as abandoned even if its pid is in use, because another program may have that pid. */
const abandonedMs = 60 * 60_000;

/**
 * The folder of events that wait for their upload, with a folder for each account, and in it one for each job. All processes
 * of the node share it.
 */
export class LogSpool {
  readonly #folder: string;
  readonly #logger: Logger;
  readonly #shares: SpoolShares;
  /** By job, as last measured. */
  #files = new Map<number, number>();
  #measuredAt = -Infinity;
  #measuring: Promise<void> | undefined;
  /** Events that were dropped here since the start, by account and data set. */
  readonly dropped = new DropCounts();
  /** Bytes on the disk, as last measured. */
  bytes = 0;
  /** The largest segment. */
  readonly segmentBytesMax: number;
  #isFailing = false;

  constructor(folder: string, megabytesMax: number, logger: Logger) {
    this.#folder = folder;
    const bytesMax = megabytesMax * mebibyte;
    this.#shares = new SpoolShares(bytesMax);
    this.segmentBytesMax = Math.max(Math.floor(bytesMax * segmentPart), segmentBytesMin);
    this.#logger = logger;
  }

  /** Says which jobs collect: their accounts share the spool. */
  setActive(jobs: readonly SpoolOwner[]): void {
    this.#shares.setActive(jobs.map(({ accountId }) => accountId));
  }

  writer({ id, accountId }: SpoolOwner, dataSet: string, limits: SegmentLimits): SegmentWriter {
    const owner = { id, accountId };
    return new SegmentWriter(
      {
        folder: this.#folderOf(owner),
        hasRoom: () => this.hasRoom(owner),
        isCrowded: () => (this.#files.get(id) ?? 0) >= filesMax,
        grew: (from, to) => {
          if (from === undefined) this.#files.set(id, (this.#files.get(id) ?? 0) + 1);
          this.#shares.add(owner, counted(to) - (from === undefined ? 0 : counted(from)));
          this.#isFailing = false;
        },
        dropped: (records) => this.dropped.add(owner, dataSet, records),
        failed: (error) => this.#failed(id, error),
      },
      limits,
    );
  }

  /** Whether the spool has room for events of a job, according to the last measurement. */
  hasRoom(owner: SpoolOwner): boolean {
    if (performance.now() - this.#measuredAt > measuredMs) unawaited(this.measure());
    return this.#shares.hasRoom(owner);
  }

  /** Reads the sizes of all files. Never rejects. */
  async measure(): Promise<void> {
    this.#measuring ??= this.#measure().finally(() => {
      this.#measuredAt = performance.now();
      this.#measuring = undefined;
    });
    return this.#measuring;
  }

  /** The jobs that have a folder. */
  async owners(): Promise<SpoolOwner[]> {
    const accountIds = await readdir(this.#folder).catch(emptyIfAbsent);
    const owners = accountIds.map(async (accountId) => {
      const names = await readdir(join(this.#folder, accountId)).catch(() => []);
      return names.filter((name) => /^\d+$/.test(name)).map((name) => ({ id: Number(name), accountId }));
    });
    return (await Promise.all(owners)).flat();
  }

  /** The segments of a job that wait, oldest first. */
  async ready(owner: SpoolOwner): Promise<ReadySegment[]> {
    const folder = this.#folderOf(owner);
    const files = (await readdir(folder).catch(emptyIfAbsent)).toSorted();
    return files.flatMap((file) => {
      const name = readSegmentName(file);
      return name?.state === "ready" ? [{ ...name, path: join(folder, file) }] : [];
    });
  }

  /** Removes an uploaded segment. */
  async remove(owner: SpoolOwner, { path }: ReadySegment): Promise<void> {
    const { size } = await stat(path);
    await rm(path, { force: true });
    this.#shares.add(owner, -counted(size));
    this.#files.set(owner.id, Math.max((this.#files.get(owner.id) ?? 0) - 1, 0));
  }

  async removeJob(owner: SpoolOwner): Promise<void> {
    await rm(this.#folderOf(owner), { recursive: true, force: true });
    await this.measure();
  }

  /**
   * Makes the segments of ended processes ready for upload. `isOwnStart`: this process has just started, so a
   * segment with its pid belongs to an earlier process.
   */
  async adopt(isOwnStart: boolean): Promise<void> {
    for (const owner of await this.owners()) {
      const folder = this.#folderOf(owner);
      for (const file of await readdir(folder).catch(emptyIfAbsent)) {
        const name = readSegmentName(file);
        if (name?.state !== "open" || !(await this.#isAbandoned(join(folder, file), name, isOwnStart)))
          continue;
        await rename(join(folder, file), join(folder, fileOf(name, "ready"))).catch(() => {}); // another process has renamed it
      }
    }
  }

  async #isAbandoned(path: string, { pid }: SpoolSegment, isOwnStart: boolean): Promise<boolean> {
    if (pid === process.pid) return isOwnStart;
    if (!isAlive(pid)) return true;
    const written = await stat(path).catch(() => undefined);
    return written !== undefined && Date.now() - written.mtimeMs > abandonedMs;
  }

  async #measure(): Promise<void> {
    const used: [SpoolOwner, number][] = [];
    const files = new Map<number, number>();
    let bytes = 0;
    for (const owner of await this.owners().catch(() => [])) {
      const folder = this.#folderOf(owner);
      const names = await readdir(folder).catch(() => []);
      const sizes = await Promise.all(names.map(async (name) => sizeOf(join(folder, name))));
      files.set(owner.id, names.length);
      for (const size of sizes) {
        bytes += size;
        used.push([owner, counted(size)]);
      }
    }
    this.#files = files;
    this.#shares.setUsed(used);
    this.bytes = bytes;
  }

  #failed(jobId: number, error: unknown): void {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return; // the job was deleted
    if (!this.#isFailing)
      this.#logger.warn({ err: error, job: jobId }, "events of Logpush cannot be written to the data folder");
    this.#isFailing = true;
  }

  #folderOf({ id, accountId }: SpoolOwner): string {
    return join(this.#folder, accountId, String(id));
  }
}

/** Events that were dropped. */
class DropCounts {
  readonly #byAccount = new Map<string, Map<string, number>>();
  #unreported = new Map<number, number>();

  add({ id, accountId }: SpoolOwner, dataSet: string, events: number): void {
    let bySet = this.#byAccount.get(accountId);
    if (bySet === undefined) this.#byAccount.set(accountId, (bySet = new Map()));
    bySet.set(dataSet, (bySet.get(dataSet) ?? 0) + events);
    this.#unreported.set(id, (this.#unreported.get(id) ?? 0) + events);
  }

  /** Since the start. */
  *counts(): Generator<{ accountId: string; dataSet: string; count: number }> {
    for (const [accountId, bySet] of this.#byAccount)
      for (const [dataSet, count] of bySet) yield { accountId, dataSet, count };
  }

  /** By job, since it was last asked. */
  take(): ReadonlyMap<number, number> {
    const unreported = this.#unreported;
    this.#unreported = new Map();
    return unreported;
  }
}

const sizeOf = async (path: string): Promise<number> =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  );

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function emptyIfAbsent(error: unknown): string[] {
  if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
  throw error;
}
