import { closeSync, existsSync, mkdirSync, openSync, readSync, renameSync, writeSync } from "node:fs";
import { endianness } from "node:os";
import { dirname } from "node:path";

/** The end of a SQLite log: its salt, which changes when the log is restarted, and the number of committed frames. */
export interface LogEnd {
  salt: string;
  frames: number;
  /** Frames whose pages are in the database file. When all are, the next writer restarts the log. */
  moved: number;
}

/** A commit: its time in milliseconds of the wall clock, and its position in the log. */
export interface CommitTime extends Pick<LogEnd, "salt" | "frames"> {
  ms: number;
}

const isLittleEndian = endianness() === "LE";
const headerBytes = 48;
const indexBytes = 2 * headerBytes + 4;
const slotBytes = 24;
const slots = 32 * 1024;
const attemptsMax = 1000;

/**
 * Reads the end of the log from its index (`-shm`, "WAL-Index File Format" of SQLite). The file must stay open
 * until the database is closed: closing it would release the locks of this process.
 */
export class LogIndex {
  readonly #descriptor: number;
  readonly #buffer = Buffer.alloc(indexBytes);

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  static open(databasePath: string): number {
    return openSync(`${databasePath}-shm`, "r");
  }

  end(): LogEnd {
    const buffer = this.#buffer;
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      readSync(this.#descriptor, buffer, 0, indexBytes, 0);
      // The index has two copies of its header. A writer changes one after the other.
      if (buffer.compare(buffer, headerBytes, 2 * headerBytes, 0, headerBytes) !== 0) continue;
      return { salt: buffer.toString("hex", 32, 40), frames: this.#number(16), moved: this.#number(96) };
    }
    throw new Error("The index of the write-ahead log could not be read, because it kept changing");
  }

  #number(at: number): number {
    return isLittleEndian ? this.#buffer.readUInt32LE(at) : this.#buffer.readUInt32BE(at);
  }
}

/**
 * Writes the time of each commit to a file, which survives the process. The file is a ring of numbered slots, so its
 * size is fixed.
 */
export class CommitTimes {
  readonly descriptor: number;
  readonly #index: LogIndex;
  readonly #file: number;
  readonly #slot = Buffer.alloc(slotBytes);
  #number = 0;
  #last: CommitTime | undefined;

  /** The times of an earlier process are moved to `PATH.before`. */
  constructor(databasePath: string, path: string) {
    this.descriptor = LogIndex.open(databasePath);
    this.#index = new LogIndex(this.descriptor);
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    if (existsSync(path)) renameSync(path, `${path}.before`);
    this.#file = openSync(path, "w", 0o600);
  }

  /** Call it between a commit and its acknowledgement. */
  note(): void {
    const { salt, frames } = this.#index.end();
    const ms = Date.now();
    // One slot for each millisecond is enough.
    if (this.#last?.ms !== ms || this.#last.salt !== salt) this.#number += 1;
    this.#last = { ms, salt, frames };
    this.#slot.writeUInt32LE(this.#number, 0);
    this.#slot.writeUInt32LE(frames, 4);
    this.#slot.writeDoubleLE(ms, 8);
    this.#slot.write(salt, 16, "hex");
    writeSync(this.#file, this.#slot, 0, slotBytes, (this.#number % slots) * slotBytes);
  }

  /** Call it after the database is closed. */
  close(): void {
    closeSync(this.descriptor);
    closeSync(this.#file);
  }
}

/** Reads the times that `CommitTimes` writes, also those of an earlier process. */
export class NotedTimes implements Disposable {
  readonly #file: number | undefined;
  readonly #slot = Buffer.alloc(slotBytes);
  #number = 0;
  #frames = 0;

  constructor(path: string) {
    this.#file = existsSync(path) ? openSync(path, "r") : undefined;
  }

  /** The times since the last call, oldest first. Repeats that call's last one if it got more frames. */
  next(): CommitTime[] {
    const found: CommitTime[] = [];
    for (let number = Math.max(1, this.#number); ; number++) {
      let slot = this.#read(number);
      if (slot === undefined) break;
      // The ring has wrapped around: continue with the oldest slot that is left.
      if (slot.number > number) slot = this.#read((number = slot.number - slots + 1));
      if (slot?.number !== number) break;
      const { frames, ms, salt } = slot;
      if (number !== this.#number || frames !== this.#frames) found.push({ frames, ms, salt });
      this.#number = number;
      this.#frames = frames;
    }
    return found;
  }

  [Symbol.dispose](): void {
    if (this.#file !== undefined) closeSync(this.#file);
  }

  #read(number: number): (CommitTime & { number: number }) | undefined {
    if (this.#file === undefined) return undefined;
    const slot = this.#slot;
    if (readSync(this.#file, slot, 0, slotBytes, (number % slots) * slotBytes) < slotBytes) return undefined;
    return {
      number: slot.readUInt32LE(0),
      frames: slot.readUInt32LE(4),
      ms: slot.readDoubleLE(8),
      salt: slot.toString("hex", 16, slotBytes),
    };
  }
}
