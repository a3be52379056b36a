import { closeSync, openSync, readSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { LogIndex, NotedTimes, type CommitTime } from "../storage/commit-times.ts";
import { encodeSegment, frameHeaderBytes, logHeaderBytes, type Mark, type Position } from "./segment.ts";
import type { Spool, SpoolState } from "./spool.ts";

const segmentBytesMax = 8 * 1024 * 1024;
/** A longer log is restarted, for which writers wait some milliseconds. */
const logBytesMax = 128 * 1024 * 1024;
const shortenAgainMs = 30_000;
/** Maximum number of commit times that wait for their frames. */
const marksMax = 100_000;

/** The log was restarted before all of it was copied. */
export class LogLost extends Error {}

/**
 * Copies the frames of SQLite's write-ahead log into segments. Only this thread makes checkpoints, so SQLite
 * overwrites no frame that is not copied: while the thread copies, a read transaction keeps writers from
 * restarting the log, and a checkpoint moves no frame that is newer than that transaction.
 */
export class LogCopier {
  readonly #path: string;
  readonly #spool: Spool;
  readonly #index: LogIndex;
  readonly #reader: DatabaseSync;
  readonly #checkpoints: DatabaseSync;
  readonly #pageBytes: number;
  #log: number;
  #state: SpoolState | undefined;
  readonly #times: NotedTimes;
  #commits: CommitTime[] = [];
  #shortenedAt = -Infinity;

  /** `timesPath`: where the times of commits are noted. */
  constructor(path: string, indexDescriptor: number, spool: Spool, timesPath: string) {
    this.#times = new NotedTimes(timesPath);
    // The times that a killed process noted. They apply if this process continues its log.
    using before = new NotedTimes(`${timesPath}.before`);
    this.#commits = before.next();
    this.#path = path;
    this.#spool = spool;
    this.#index = new LogIndex(indexDescriptor);
    this.#reader = new DatabaseSync(path, { timeout: 5000 });
    this.#checkpoints = new DatabaseSync(path, { timeout: 5000 });
    this.#pageBytes = (this.#reader.prepare("pragma page_size").get() as { page_size: number }).page_size;
    this.#log = openSync(`${path}-wal`, "r");
  }

  get state(): SpoolState | undefined {
    return this.#state;
  }

  get pageBytes(): number {
    return this.#pageBytes;
  }

  /** Continues the chain of an earlier process if the log is the same or its successor. Returns whether it does. */
  resume(state: SpoolState): boolean {
    const { salt, frames } = this.#index.end();
    const isSame =
      salt === state.salt && frames >= state.frame && this.#checksumOf(state.frame) === state.checksum;
    if (!isSame && !followsOn(state, salt)) return false;
    for (const { chain, name, path } of this.#spool.segments())
      if (chain === state.chain && Number(name.slice(0, 10)) > state.number) this.#spool.remove(path);
    this.#state = state;
    return true;
  }

  /**
   * Begins a chain of segments: later commits are copied to it. Returns a connection that reads the database as of
   * a position at or before `at`. The caller closes the connection. After an error, the earlier chain continues.
   */
  begin(chain: string, target: string): { database: DatabaseSync; at: Position } {
    const database = new DatabaseSync(this.#path, { timeout: 5000 });
    // Commits between the two positions are in both the copy and the segments, and a restore writes them twice.
    try {
      const { salt, frames: frame, moved } = this.#index.end();
      database.exec("begin");
      database.prepare("select 1 from sqlite_master limit 1").get();
      const seen = this.#index.end();
      if (seen.salt !== salt) throw new LogLost("The log of the database began again");
      const startedMs = Date.now();
      const checksum = this.#checksumOf(frame);
      const start = { target, chain, isComplete: false, startedMs, number: 0, generation: 1 };
      this.#save({ ...start, salt, frame, checksum, isSealed: moved === frame });
      this.#commits = [];
      return { database, at: { generation: 1, frame: seen.frames } };
    } catch (error) {
      database.close(); // its transaction would keep the log from being restarted
      throw error;
    }
  }

  /** Records that the chain's copy of the database is at the target. */
  complete(): void {
    this.#save({ ...this.#state!, isComplete: true });
  }

  /** Gives up the chain. The log is not copied until the next `begin`. */
  drop(): void {
    this.#state = undefined;
    this.#commits = [];
  }

  /**
   * Copies new frames and makes a checkpoint. Throws LogLost if frames are missing. After other errors, the
   * next call continues from the same frame.
   */
  copy(): void {
    this.#inTransaction("begin", () => {
      this.#copyNew();
      this.#checkpoint();
    });
    const isLong = (this.#state?.frame ?? 0) * this.#pageBytes > logBytesMax;
    if (!isLong || performance.now() - this.#shortenedAt < shortenAgainMs) return;
    this.#shortenedAt = performance.now();
    // With no writer active, the next write can restart the log.
    this.#inTransaction("begin immediate", () => {
      this.#copyNew();
      this.#checkpoint();
    });
  }

  /** Moves all pages into the database file and truncates the log. Returns whether that is on disk. */
  renew(): boolean {
    try {
      this.copy();
      // Commits that it moves now are not copied, so the chain ends.
      if (this.#state !== undefined) this.#save({ ...this.#state, isSealed: false });
      const { busy } = this.#checkpoints.prepare("pragma wal_checkpoint(truncate)").get() as { busy: number };
      return busy === 0;
    } catch {
      return false;
    }
  }

  close(): void {
    this.#reader.close();
    this.#checkpoints.close();
    closeSync(this.#log);
    this.#times[Symbol.dispose]();
  }

  #inTransaction(begin: string, work: () => void): void {
    this.#reader.exec(begin);
    try {
      this.#reader.prepare("select 1 from sqlite_master limit 1").get();
      work();
    } finally {
      this.#reader.exec("rollback");
    }
  }

  #copyNew(): void {
    const state = this.#state;
    if (state === undefined) return;
    const { salt, frames } = this.#index.end();
    let { generation, frame } = state;
    if (salt !== state.salt) {
      if (!followsOn(state, salt))
        throw new LogLost("The log of the database began again before it was copied");
      generation += 1;
      frame = 0;
    } else if (frames < frame) throw new LogLost("The log of the database is shorter than it was");
    // The frames of all noted commits are in the log by now, or were before it restarted.
    this.#commits.push(...this.#times.next());
    this.#commits.splice(0, this.#commits.length - marksMax);
    const marks = this.#marksUpTo({ salt, frames }, generation);
    const frameBytes = frameHeaderBytes + this.#pageBytes;
    const atOnce = Math.floor(segmentBytesMax / frameBytes);
    let { number } = state;
    for (; frame < frames || marks.length > 0;) {
      const count = Math.min(atOnce, frames - frame);
      const bytes = this.#read(frame, count);
      const segment = {
        number: ++number,
        generation,
        first: frame + 1,
        pageBytes: this.#pageBytes,
        copiedMs: Date.now(),
        marks: frame + count === frames ? marks.splice(0) : [],
        frames: bytes,
      };
      const encoded = encodeSegment(segment);
      this.#spool.add(state.chain, encoded.name, encoded.bytes);
      frame += count;
      const checksum =
        count === 0
          ? this.#state!.checksum
          : bytes.toString("hex", bytes.length - frameBytes + 16, bytes.length - this.#pageBytes);
      this.#save({ ...this.#state!, number, generation, salt, frame, checksum, isSealed: false });
    }
    if (salt !== this.#state!.salt)
      this.#save({ ...this.#state!, generation, salt, frame, checksum: "", isSealed: false });
  }

  /** Removes and returns the times of commits whose frames are copied now or were copied before. */
  #marksUpTo(end: { salt: string; frames: number }, generation: number): Mark[] {
    const marks: Mark[] = [];
    const later: CommitTime[] = [];
    for (const commit of this.#commits) {
      const isEarlier = commit.salt === this.#state!.salt && commit.salt !== end.salt;
      if (isEarlier) marks.push({ ms: commit.ms, generation: generation - 1, frame: commit.frames });
      else if (commit.salt === end.salt && commit.frames <= end.frames)
        marks.push({ ms: commit.ms, generation, frame: commit.frames });
      else if (commit.salt === end.salt || isNext(commit.salt, end.salt)) later.push(commit);
    }
    this.#commits = later;
    return marks;
  }

  #checkpoint(): void {
    const result = this.#checkpoints.prepare("pragma wal_checkpoint(passive)").get() as {
      log: number;
      checkpointed: number;
    };
    const state = this.#state;
    if (state === undefined || this.#index.end().salt !== state.salt) return;
    const isSealed = result.log === result.checkpointed && result.log === state.frame;
    if (isSealed !== state.isSealed) this.#save({ ...state, isSealed });
  }

  #read(after: number, count: number): Buffer {
    const frameBytes = frameHeaderBytes + this.#pageBytes;
    const bytes = Buffer.alloc(count * frameBytes);
    const read = readSync(this.#log, bytes, 0, bytes.length, logHeaderBytes + after * frameBytes);
    if (read !== bytes.length) throw new LogLost("The log of the database is cut off");
    return bytes;
  }

  #checksumOf(frame: number): string {
    if (frame === 0) return "";
    return this.#read(frame - 1, 1).toString("hex", 16, frameHeaderBytes);
  }

  #save(state: SpoolState): void {
    this.#spool.writeState(state);
    this.#state = state;
  }
}

const followsOn = (state: SpoolState, salt: string): boolean => state.isSealed && isNext(salt, state.salt);

/** Whether a log directly follows another: at each restart SQLite adds one to the first half of the salt. */
function isNext(salt: string, before: string): boolean {
  const first = (text: string): number => parseInt(text.slice(0, 8), 16);
  return first(salt) === (first(before) + 1) % 2 ** 32;
}
