import { statSync } from "node:fs";
import { LogGap, LogTail, type Frames } from "../storage/live-files/log-tail.ts";
import { fileBytes, type ObjectFile } from "../storage/live-files/object-files.ts";
import type { FileState } from "./catalog.ts";
import type { Entry } from "./segment.ts";
import type { Stamp, Stamps } from "./stamps.ts";

/** Frames of a larger commit are not copied; a new base follows instead. */
const commitBytesMax = 32 * 1024 * 1024;
/** A new base follows when the frames exceed both this and the size of the file, or after a day. */
const baseAfterBytes = 16 * 1024 * 1024;
const baseAfterMs = 24 * 60 * 60 * 1000;

/** A database of an object, whose log is copied while it is written. */
export class FollowedFile {
  readonly file: ObjectFile;
  readonly path: string;
  /** Incremented when frames are missing, which makes a base that is in progress useless. */
  epoch = 0;
  /** Whether a base is being made. */
  isCopied = false;
  readonly #tail: LogTail;
  #base: Stamp | undefined;
  #bytesSinceBase: number;
  #logStart: Stamp;
  #salt: string | undefined;
  #hasGap = false;
  readonly #stamps: Stamps;
  readonly #push: (entry: Entry) => void;

  constructor(
    { file, path, state }: { file: ObjectFile; path: string; state: FileState | undefined },
    stamps: Stamps,
    push: (entry: Entry) => void,
  ) {
    this.file = file;
    this.path = path;
    this.#stamps = stamps;
    this.#push = push;
    this.#base = state?.base;
    this.#bytesSinceBase = state?.bytesSinceBase ?? 0;
    this.#logStart = state?.logStart ?? stamps.last;
    this.#salt = state?.position?.salt;
    const isSame = state?.facts === undefined || state.facts === fingerprintOf(path);
    if (state?.isSealed === true && !isSame) {
      this.#base = undefined; // something else has written the file
      this.#tail = new LogTail(`${path}-wal`);
    } else this.#tail = new LogTail(`${path}-wal`, state?.position, state?.isSealed);
  }

  /** Whether the end of the log cannot be read, so that no base can be made. */
  get isBehind(): boolean {
    return this.#tail.isBehind;
  }

  /** Whether nothing was ever stored in the file: its process ended while it created the database. */
  get isEmpty(): boolean {
    return fileBytes(this.path) === 0;
  }

  get hasBase(): boolean {
    return this.#base !== undefined;
  }

  get isOpen(): boolean {
    return this.#tail.isOpen;
  }

  get state(): FileState {
    const { position, isSealed } = this.#tail;
    const facts = isSealed ? fingerprintOf(this.path) : undefined;
    const [base, bytesSinceBase, logStart] = [this.#base, this.#bytesSinceBase, this.#logStart];
    return { position, isSealed, logStart, base, bytesSinceBase, facts };
  }

  /** Copies the commits since the last call. */
  read(): void {
    try {
      this.#tail.read((frames) => this.#take(frames), commitBytesMax);
    } catch (error) {
      if (!(error instanceof LogGap)) throw error;
      this.noteGap();
      try {
        this.#tail.read((frames) => this.#take(frames), commitBytesMax);
      } catch (again) {
        if (!(again instanceof LogGap)) throw again;
        this.noteGap(); // lasts until the log restarts
      }
    }
  }

  /** Records that frames are missing, because they were not read or could not be shipped. */
  noteGap(): void {
    this.#tail.restart();
    this.#salt = undefined;
    this.#base = undefined;
    this.epoch += 1;
    if (this.#hasGap) return;
    this.#hasGap = true;
    this.#push({ ...this.file, kind: "gap", stamp: this.#stamps.next(), bytes: Buffer.alloc(0) });
  }

  /** Records that the log lacks entries that were in it. */
  noteLoss(): void {
    this.#hasGap = false;
    this.noteGap();
  }

  /** Whether the file needs a new base. `fileBytes` is its size. */
  needsBase(fileBytes: number, nowMs: number, baseMs: (stamp: Stamp) => number): boolean {
    if (this.isCopied || this.isBehind) return false;
    if (this.#base === undefined) return true;
    if (this.#bytesSinceBase === 0) return false;
    return (
      this.#bytesSinceBase > Math.max(baseAfterBytes, fileBytes) || nowMs - baseMs(this.#base) > baseAfterMs
    );
  }

  /** The `start` of a base that begins now: before the first frame that it needs. */
  get baseStart(): Stamp {
    return this.#tail.position === undefined ? this.#stamps.last : this.#logStart;
  }

  /** Records that a base was made. */
  setBase(stamp: Stamp): void {
    this.#base = stamp;
    this.#bytesSinceBase = 0;
    this.#hasGap = false;
  }

  close(): void {
    this.#tail.close();
  }

  #take({ salt, first, pageBytes, pages, bytes }: Frames): void {
    if (salt !== this.#salt) {
      this.#logStart = this.#stamps.last;
      this.#salt = salt;
    }
    this.#bytesSinceBase += bytes.length;
    const header = { salt, first, pageBytes, pages };
    this.#push({ ...this.file, kind: "frames", stamp: this.#stamps.next(), ...header, bytes });
  }
}

function fingerprintOf(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && `${found.size} ${found.mtimeMs}`;
}
