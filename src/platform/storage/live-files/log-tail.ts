import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import {
  checkFrame,
  commitOf,
  frameHeaderBytes,
  logHeaderBytes,
  readHeader,
  wordBuffer,
  type LogHeader,
  type Sums,
} from "./log-format.ts";
import { readFlags } from "./object-files.ts";

/** Consecutive frames of a log, as SQLite wrote them. */
export interface Frames {
  salt: string;
  /** The number of the first frame, counted from 1. */
  first: number;
  pageBytes: number;
  /** Number of pages of the database after the last frame; 0 if that frame ends no commit. */
  pages: number;
  bytes: Buffer;
}

/** The last frame of a log that was read. */
export interface TailPosition {
  salt: string;
  pageBytes: number;
  frame: number;
  sums: Sums;
}

/** Frames are missing: the log was restarted or replaced before they were read. */
export class LogGap extends Error {}

/** A frame, and the checksum up to it. */
interface Read {
  frame: number;
  sums: Sums;
}
/** A frame that ends a commit, with the number of pages of the database after it. */
interface Commit extends Read {
  pages: number;
}
interface Seen extends Read {
  /** The checksum of the first of these frames, which identifies them. */
  first: string;
}
type Piece = Pick<Frames, "first" | "bytes">;

const pieceBytes = 1024 * 1024;
/** The frames that are read first: most reads find no more. */
const firstFrames = 8;
/** Pieces that are kept until the end of their commit is found. Those of longer commits are read again. */
const piecesMax = 32;
const header = wordBuffer(logHeaderBytes);
const piece = wordBuffer(pieceBytes + 65_536 + frameHeaderBytes);

/**
 * Reads the committed frames of the log of a database that another process writes. It takes no locks and
 * opens no connection, so it never affects the writer. A frame counts as committed when its checksum, which
 * covers all frames before it, is right, and when it or a later frame ends a commit.
 *
 * SQLite restarts a log after 1,000 frames or more, and overwrites it from its start. Older frames stay
 * behind the new ones for a while, so no frame is missed if `read` is called at least once for each 1,000
 * frames.
 */
export class LogTail {
  readonly #path: string;
  #file: number | undefined;
  #at: TailPosition | undefined;
  /** Complete frames after `#at` whose commit has not ended yet. */
  #seen: Seen | undefined;
  #isSealed: boolean;
  /** The salt of a log that is skipped because a commit is too large. */
  #skipped: string | undefined;

  /**
   * `path` is the `-wal` file. To continue an earlier reader, `at` is its position; `isSealed` says that it
   * has read its log to the end and that the log was removed.
   */
  constructor(path: string, at?: TailPosition, isSealed = at === undefined) {
    this.#path = path;
    this.#at = at;
    this.#isSealed = isSealed;
  }

  get position(): TailPosition | undefined {
    return this.#at;
  }

  /** Whether the log was read to its end and removed, as SQLite does when the last connection is closed. */
  get isSealed(): boolean {
    return this.#isSealed;
  }

  /** Whether a commit was too large, so that no frame is read until the log restarts. */
  get isBehind(): boolean {
    return this.#skipped !== undefined;
  }

  /** Call this after a LogGap. Reading continues with the first frame of the current log. */
  restart(): void {
    this.#at = this.#seen = undefined;
    this.#isSealed = true;
  }

  get isOpen(): boolean {
    return this.#file !== undefined;
  }

  /**
   * Passes new frames of complete commits to `take`, in pieces. Throws LogGap if frames are missing, or if those of one
   * commit have more than `bytesMax` bytes; the position is then undefined.
   */
  read(take: (frames: Frames) => void, bytesMax = Number.POSITIVE_INFINITY): void {
    try {
      for (;;) {
        this.#file ??= open(this.#path);
        if (this.#file === undefined) return;
        const { size, nlink } = fstatSync(this.#file);
        if (size >= logHeaderBytes) this.#readFile(this.#file, take, bytesMax);
        if (nlink !== 0) return;
        // The log was removed. There may be a new one.
        this.close();
        this.restart();
        this.#skipped = undefined;
      }
    } catch (error) {
      this.#at = this.#seen = undefined;
      throw error;
    }
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  #readFile(file: number, take: (frames: Frames) => void, bytesMax: number): void {
    if (readSync(file, header, 0, logHeaderBytes, 0) < logHeaderBytes) return;
    const found = readHeader(header);
    if (found === undefined) return; // the header is being written
    if (found.salt === this.#skipped) return;
    this.#skipped = undefined;
    const at = this.#at;
    if (at === undefined) {
      if (!this.#isSealed) throw new LogGap("The log is not the one that was read before");
      this.#begin(found);
    } else if (at.salt !== found.salt) {
      if (!isNext(found.salt, at.salt)) throw new LogGap("The log restarted more than once");
      this.#readOn(file, take, bytesMax);
      if (this.#lengthOf(file, found) >= this.#at!.frame)
        throw new LogGap("The log restarted before all of it was read");
      this.#begin(found);
    }
    this.#isSealed = false;
    this.#readOn(file, take, bytesMax);
  }

  #begin({ salt, pageBytes, sums }: LogHeader): void {
    this.#at = { salt, pageBytes, frame: 0, sums };
    this.#seen = undefined;
  }

  #readOn(file: number, take: (frames: Frames) => void, bytesMax: number): void {
    const at = this.#at!;
    const frameBytes = frameHeaderBytes + at.pageBytes;
    const isStill = this.#seen !== undefined && this.#isStill(file, this.#seen);
    const { end, seen, pieces } = this.#scan(file, isStill ? this.#seen! : at);
    this.#seen =
      seen.frame === at.frame ? undefined : { ...seen, first: this.#checksumOf(file, at.frame + 1) };
    if (end === undefined) return;
    if ((end.frame - at.frame) * frameBytes > bytesMax) {
      this.#skipped = at.salt;
      throw new LogGap("A commit is too large");
    }
    const kept = isStill ? undefined : pieces;
    for (const each of kept ?? this.#readAgain(file, end.frame)) {
      const last = each.first - 1 + each.bytes.length / frameBytes;
      const count = Math.min(last, end.frame) - each.first + 1;
      if (count <= 0) break;
      const bytes = each.bytes.subarray(0, count * frameBytes);
      const pages = last >= end.frame ? end.pages : 0;
      take({ salt: at.salt, pageBytes: at.pageBytes, first: each.first, pages, bytes });
    }
    this.#at = { ...at, frame: end.frame, sums: end.sums };
    if (end.frame === seen.frame) this.#seen = undefined;
  }

  /** Finds the last commit after a position. Keeps the frames unless they are too many. */
  #scan(file: number, from: Read): { end: Commit | undefined; seen: Read; pieces: Piece[] | undefined } {
    const at = this.#at!;
    const frameBytes = frameHeaderBytes + at.pageBytes;
    let seen = from;
    let end: Commit | undefined;
    let pieces: Piece[] | undefined = [];
    for (;;) {
      const read = readPiece(file, at, seen);
      const count = read.frame - seen.frame;
      if (pieces?.length === piecesMax) pieces = undefined;
      if (count > 0)
        pieces?.push({ first: seen.frame + 1, bytes: Buffer.from(piece.subarray(0, count * frameBytes)) });
      seen = { frame: read.frame, sums: read.sums };
      end = read.end ?? end;
      if (read.isLast) return { end, seen, pieces };
    }
  }

  /** Reads the frames up to `to` again and checks them, because the log may have been restarted meanwhile. */
  *#readAgain(file: number, to: number): Generator<Piece> {
    const at = this.#at!;
    let seen: Read = at;
    while (seen.frame < to) {
      const read = readPiece(file, at, seen, to - seen.frame);
      const count = read.frame - seen.frame;
      if (read.isLast) throw new LogGap("The log was restarted or cut off while it was read");
      const bytes = Buffer.from(piece.subarray(0, count * (frameHeaderBytes + at.pageBytes)));
      yield { first: seen.frame + 1, bytes };
      seen = read;
    }
  }

  /** Whether the seen frames are still there. When their transaction is rolled back, others replace them. */
  #isStill(file: number, { frame, sums, first }: Seen): boolean {
    return (
      this.#checksumOf(file, this.#at!.frame + 1) === first && this.#checksumOf(file, frame) === textOf(sums)
    );
  }

  #checksumOf(file: number, frame: number): string {
    const frameBytes = frameHeaderBytes + this.#at!.pageBytes;
    readSync(file, header, 0, frameHeaderBytes, logHeaderBytes + (frame - 1) * frameBytes);
    return textOf([header.readInt32BE(16), header.readInt32BE(20)]);
  }

  /** The number of frames of a log, including uncommitted ones. */
  #lengthOf(file: number, header: LogHeader): number {
    for (let seen: Read = { frame: 0, sums: header.sums }; ;) {
      const read = readPiece(file, header, seen);
      if (read.isLast) return read.frame;
      seen = read;
    }
  }
}

const textOf = ([one, two]: Sums): string => `${one} ${two}`;

/**
 * Reads the frames that follow `from` into `piece`: at most `countMax`, and at most a piece. `isLast` says that the next
 * frame does not follow, or is not there yet. Frames of the log before the last restart may be behind the new ones, so
 * few frames are read first, and more as long as all of them follow.
 */
function readPiece(
  file: number,
  log: Pick<LogHeader, "salt" | "pageBytes">,
  from: Read,
  countMax = Number.POSITIVE_INFINITY,
): Read & { end: Commit | undefined; isLast: boolean } {
  const frameBytes = frameHeaderBytes + log.pageBytes;
  const wanted = Math.min(Math.floor(pieceBytes / frameBytes) || 1, countMax);
  let { frame, sums } = from;
  let end: Commit | undefined;
  for (let count = 0, few = firstFrames; count < wanted; few *= 2) {
    const got = readFrames(file, frame, { count: Math.min(few, wanted - count), frameBytes, into: count });
    if (got === 0) return { frame, sums, end, isLast: true };
    for (const last = count + got; count < last; count++) {
      const next = checkFrame(piece, count * frameBytes, log, sums);
      if (next === undefined) return { frame, sums, end, isLast: true };
      sums = next;
      frame += 1;
      const pages = commitOf(piece, count * frameBytes);
      if (pages !== 0) end = { frame, sums, pages };
    }
  }
  return { frame, sums, end, isLast: false };
}

/** Reads at most `count` complete frames after frame number `after`, behind `into` frames of `piece`. Returns their number. */
function readFrames(
  file: number,
  after: number,
  { count, frameBytes, into }: { count: number; frameBytes: number; into: number },
): number {
  const at = logHeaderBytes + after * frameBytes;
  return Math.floor(readSync(file, piece, into * frameBytes, count * frameBytes, at) / frameBytes);
}

function open(path: string): number | undefined {
  try {
    return openSync(path, readFlags);
  } catch (error) {
    if (["ENOENT", "ELOOP"].includes((error as NodeJS.ErrnoException).code!)) return undefined;
    throw error;
  }
}

/** Whether a log directly follows another: at each restart SQLite adds one to the first half of the salt. */
function isNext(salt: string, before: string): boolean {
  const first = (text: string): number => parseInt(text.slice(0, 8), 16);
  return first(salt) === (first(before) + 1) % 2 ** 32;
}
