import { readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { mebibyte } from "../../../platform/bytes.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";
import { fileOf, readSegmentName, type SpoolSegment } from "./segment-name.ts";
import { SegmentWriter, type SegmentLimits } from "./segment-writer.ts";

/** A segment that waits for its upload. */
export interface ReadySegment extends SpoolSegment {
  path: string;
}

/** A job gets at most this share of the spool, and at most as much as is free then, so that others find room. */
const shareOfJob = 1 / 4;
/** How long a measurement of the spool's size on the disk stays valid. */
const measuredMs = 2000;
/** An older open segment counts as abandoned even if its pid is in use, because another program may have that pid. */
const abandonedMs = 60 * 60_000;

/** The folder of events that wait for their upload, with a folder for each job. All processes of the node share it. */
export class LogSpool {
  readonly #folder: string;
  readonly #bytesMax: number;
  readonly #logger: Logger;
  /** By job: bytes on the disk at the last measurement, and those written by this process since. */
  #bytes = new Map<number, number>();
  #measuredAt = -Infinity;
  #measuring: Promise<void> | undefined;
  /** Events that were dropped, by data set. */
  readonly dropped = new Map<string, number>();
  /** Bytes of all jobs. */
  bytes = 0;
  #isFailing = false;

  constructor(folder: string, megabytesMax: number, logger: Logger) {
    this.#folder = folder;
    this.#bytesMax = megabytesMax * mebibyte;
    this.#logger = logger;
  }

  /** Maximum size of a segment, so that a job's share has room for several. */
  get segmentBytesMax(): number {
    return Math.max(Math.floor((this.#bytesMax * shareOfJob) / 4), 64 * 1024);
  }

  writer(jobId: number, dataSet: string, limits: SegmentLimits): SegmentWriter {
    return new SegmentWriter(
      {
        folder: this.#folderOf(jobId),
        hasRoom: () => this.hasRoom(jobId),
        wrote: (bytes) => {
          this.#bytes.set(jobId, (this.#bytes.get(jobId) ?? 0) + bytes);
          this.bytes += bytes;
          this.#isFailing = false;
        },
        dropped: (records) => this.dropped.set(dataSet, (this.dropped.get(dataSet) ?? 0) + records),
        failed: (error) => this.#failed(jobId, error),
      },
      limits,
    );
  }

  /** Whether the spool has room for events of a job, according to the last measurement. */
  hasRoom(jobId: number): boolean {
    if (performance.now() - this.#measuredAt > measuredMs) unawaited(this.measure());
    const own = this.#bytes.get(jobId) ?? 0;
    return own < Math.min(this.#bytesMax * shareOfJob, this.#bytesMax - this.bytes);
  }

  /** Reads the sizes of all folders. Never rejects. */
  async measure(): Promise<void> {
    this.#measuring ??= this.#measure().finally(() => {
      this.#measuredAt = performance.now();
      this.#measuring = undefined;
    });
    return this.#measuring;
  }

  /** The jobs that have a folder. */
  async jobIds(): Promise<number[]> {
    const names = await readdir(this.#folder).catch(emptyIfAbsent);
    return names.filter((name) => /^\d+$/.test(name)).map(Number);
  }

  /** The segments of a job that wait, oldest first. */
  async ready(jobId: number): Promise<ReadySegment[]> {
    const folder = this.#folderOf(jobId);
    const files = (await readdir(folder).catch(emptyIfAbsent)).toSorted();
    return files.flatMap((file) => {
      const name = readSegmentName(file);
      return name?.state === "ready" ? [{ ...name, path: join(folder, file) }] : [];
    });
  }

  /** Removes an uploaded segment. */
  async remove(jobId: number, { path }: ReadySegment): Promise<void> {
    const size = await stat(path).then(({ size }) => size);
    await rm(path, { force: true });
    this.#bytes.set(jobId, Math.max((this.#bytes.get(jobId) ?? 0) - size, 0));
    this.bytes = Math.max(this.bytes - size, 0);
  }

  async removeJob(jobId: number): Promise<void> {
    await rm(this.#folderOf(jobId), { recursive: true, force: true });
    this.#bytes.delete(jobId);
  }

  /**
   * Makes the segments of ended processes ready for upload. `isOwnStart`: this process has just started, so a
   * segment with its pid belongs to an earlier process.
   */
  async adopt(isOwnStart: boolean): Promise<void> {
    for (const jobId of await this.jobIds()) {
      const folder = this.#folderOf(jobId);
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
    const bytes = new Map<number, number>();
    for (const jobId of await this.jobIds().catch(() => [])) {
      const folder = this.#folderOf(jobId);
      const files = await readdir(folder).catch(() => []);
      const sizes = files.map(async (file) =>
        stat(join(folder, file)).then(
          ({ size }) => size,
          () => 0,
        ),
      );
      bytes.set(
        jobId,
        (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0),
      );
    }
    this.#bytes = bytes;
    this.bytes = bytes.values().reduce((sum, each) => sum + each, 0);
  }

  #failed(jobId: number, error: unknown): void {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return; // the job was deleted
    if (!this.#isFailing)
      this.#logger.warn({ err: error, job: jobId }, "events of Logpush cannot be written to the data folder");
    this.#isFailing = true;
  }

  #folderOf(jobId: number): string {
    return join(this.#folder, String(jobId));
  }
}

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
