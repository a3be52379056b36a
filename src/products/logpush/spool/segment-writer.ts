import { mkdir, open, rename, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { mebibyte } from "../../../platform/bytes.ts";
import { clock } from "../../../platform/timers/clock.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";
import { fileOf, newSegment, type SpoolSegment } from "./segment-name.ts";

export interface SegmentLimits {
  bytesMax: number;
  recordsMax: number;
  intervalMs: number;
  /** Written between two records of a segment. */
  delimiter: string;
}

/** Where a job's segments are written. */
export interface SpoolRoom {
  folder: string;
  /** Whether the job has room for more. Called often, so it answers from memory. */
  hasRoom(): boolean;
  /** Whether the job has many files, so that the last one should grow. */
  isCrowded(): boolean;
  /** Called with the bytes of a file before and after a write; first with undefined and 0. */
  grew(from: number | undefined, to: number): void;
  dropped(records: number): void;
  failed(error: unknown): void;
}

interface OpenSegment {
  name: SpoolSegment;
  handle: FileHandle;
  bytes: number;
  records: number;
}

const flushMs = 1000;
const flushBytes = 64 * 1024;
/** Records up to this size wait for a slow disk. Further ones are dropped. */
const waitingBytesMax = 4 * mebibyte;

/**
 * Appends records to segments of one job. A record is in its file within a second; `kill -9` loses those that
 * are not. `add` neither blocks nor throws.
 */
export class SegmentWriter {
  readonly #room: SpoolRoom;
  readonly #limits: SegmentLimits;
  #records: string[] = [];
  #waitingBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #sealTimer: NodeJS.Timeout | undefined;
  #segment: OpenSegment | undefined;
  #work: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(room: SpoolRoom, limits: SegmentLimits) {
    this.#room = room;
    this.#limits = limits;
  }

  add(record: string): void {
    if (this.#isClosed || this.#waitingBytes > waitingBytesMax || !this.#room.hasRoom()) {
      this.#room.dropped(1);
      return;
    }
    this.#records.push(record);
    this.#waitingBytes += record.length;
    if (this.#waitingBytes >= flushBytes) unawaited(this.flush());
    else this.#timer ??= setTimeout(() => unawaited(this.flush()), flushMs).unref();
  }

  /** Resolves when the records that were added before are in their file, or counted as dropped. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return this.#next(async () => {
      const records = this.#records.splice(0);
      const bytes = records.reduce((sum, record) => sum + record.length, 0);
      try {
        await this.#writeAll(records);
      } catch (error) {
        this.#room.dropped(records.length);
        this.#room.failed(error);
      }
      this.#waitingBytes -= bytes;
    });
  }

  /** Resolves when the records are in their file. After a rejection, some of them may be there. */
  async write(records: readonly string[]): Promise<void> {
    if (this.#isClosed) throw new Error("Expected an open spool");
    await this.#next(async () => this.#writeAll([...records]));
  }

  /** Makes the added records ready for upload. */
  async seal(): Promise<void> {
    await this.flush();
    await this.#next(async () => this.#sealNow());
  }

  /** Makes the added records ready for upload. Later records are dropped. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.seal();
  }

  /** Runs work after all earlier work has ended. */
  async #next(work: () => Promise<void>): Promise<void> {
    const done = this.#work.then(work);
    this.#work = done.catch(() => {});
    await done;
  }

  /** Writes records, and removes those that were written from the list. */
  async #writeAll(records: string[]): Promise<void> {
    while (records.length > 0) {
      const segment = (this.#segment ??= await this.#open());
      const count = this.#fitting(segment, records);
      await this.#append(segment, records.slice(0, count));
      records.splice(0, count);
      if (segment.bytes >= this.#limits.bytesMax || segment.records >= this.#limits.recordsMax)
        await this.#sealNow();
    }
  }

  /** The number of records that fit into a segment; at least one. */
  #fitting({ bytes, records: before }: OpenSegment, records: readonly string[]): number {
    const { bytesMax, recordsMax } = this.#limits;
    let count = 0;
    for (let sum = bytes; count < records.length && before + count < recordsMax; count++) {
      sum += Buffer.byteLength(records[count]!);
      if (sum > bytesMax && before + count > 0) break;
    }
    return Math.max(count, 1);
  }

  async #append(segment: OpenSegment, records: readonly string[]): Promise<void> {
    const { delimiter } = this.#limits;
    const text = (segment.records > 0 ? delimiter : "") + records.join(delimiter);
    const bytes = Buffer.from(text, "utf8");
    try {
      let at = 0;
      while (at < bytes.length) {
        const { bytesWritten } = await segment.handle.write(bytes, at);
        at += bytesWritten;
      }
    } catch (error) {
      // No record is written in part.
      await segment.handle.truncate(segment.bytes).catch(() => {});
      throw error;
    }
    this.#room.grew(segment.bytes, segment.bytes + bytes.length);
    segment.bytes += bytes.length;
    segment.records += records.length;
  }

  async #open(): Promise<OpenSegment> {
    const name = newSegment(clock.now());
    await mkdir(this.#room.folder, { recursive: true, mode: 0o700 });
    const handle = await open(join(this.#room.folder, fileOf(name, "open")), "ax", 0o600);
    this.#room.grew(undefined, 0);
    this.#sealLater();
    return { name, handle, bytes: 0, records: 0 };
  }

  #sealLater(): void {
    const seal = (): void => (this.#room.isCrowded() ? this.#sealLater() : unawaited(this.seal()));
    this.#sealTimer = setTimeout(seal, this.#limits.intervalMs).unref();
  }

  async #sealNow(): Promise<void> {
    const segment = this.#segment;
    if (segment === undefined) return;
    this.#segment = undefined;
    clearTimeout(this.#sealTimer);
    const { folder } = this.#room;
    try {
      await segment.handle.close();
      await rename(join(folder, fileOf(segment.name, "open")), join(folder, fileOf(segment.name, "ready")));
    } catch (error) {
      this.#room.failed(error); // the job was deleted, and its folder with it
    }
  }
}
