import { closeSync, openSync, write } from "node:fs";
import type { WriteBytes } from "./write-bytes.ts";
import { LineChunk } from "./line-chunk.ts";

/** Lines are written together in chunks of this size, because each write wakes another thread. */
const chunkBytes = 256 * 1024;
/** Lines wait for a slow file in at most this many chunks, 4 MiB; further ones are dropped and counted. */
const chunksMax = 16;
const flushMs = 1000;
/** Lines are made in groups: code that runs once in a request is not in the caches of the processor. */
const groupMax = 16;
/** A stop waits at most so long for a target that takes nothing, such as a pipe without a reader. */
const closeMs = 2000;
const lineFeed = 0x0a;
const lineFeedBytes = Buffer.of(lineFeed);

/** A line that is not made yet. */
interface Line {
  value: unknown;
  write: WriteBytes<unknown>;
}

/**
 * Appends lines to a file, many at a time. `add` neither blocks nor throws. Lines soon become bytes: texts
 * would outlive their requests, and the garbage collector would copy them.
 */
export class LineWriter {
  /** The path, or "-" for standard output. */
  readonly #target: string;
  readonly #onError: (error: Error) => void;
  #fd: number;
  #group: Line[] = [];
  #filling: LineChunk | undefined;
  /** Chunks without room, the oldest first. */
  readonly #full: LineChunk[] = [];
  /** A written chunk, for reuse. */
  #free: LineChunk | undefined;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #writingChunk: LineChunk | undefined;
  #isClosed = false;
  /** Set when lines are no longer written, because the target takes none. */
  #isGivenUp = false;
  #dropped = 0;
  /** Whether the last write ended within a line. */
  #isTorn = false;
  #isFailing = false;

  /** Throws if the file cannot be opened. `onError` is called when writes begin to fail. */
  constructor(target: string, onError: (error: Error) => void) {
    this.#target = target;
    this.#onError = onError;
    this.#fd = open(target);
  }

  /** Number of lines that were not written, because too many waited or a write failed. */
  get dropped(): number {
    return this.#dropped;
  }

  /**
   * Adds a line. `write` writes it with its line feed, up to a second later, and again if there is no room for it. The value
   * must not change until then.
   */
  add<T>(value: T, write: WriteBytes<T>): void {
    if (this.#isClosed) {
      this.#dropped += 1;
      return;
    }
    if (this.#group.push({ value, write: write as WriteBytes<unknown> }) >= groupMax) this.#makeLines();
    this.#beginLater();
  }

  /** Opens the file again, after a log rotation has renamed it. If that fails, rejects and keeps the old file. */
  async reopen(): Promise<void> {
    if (this.#target === "-") return;
    const next = open(this.#target);
    await this.flush();
    const previous = this.#fd;
    this.#fd = next;
    closeSync(previous);
  }

  /** Resolves when all lines that were added before are written or counted as dropped. */
  async flush(): Promise<void> {
    this.#begin();
    while (this.#writing !== undefined) {
      await this.#writing;
      this.#begin();
    }
  }

  /** Writes the waiting lines, for at most `deadlineMs`, and closes the file. All other lines are counted as dropped. */
  async close(deadlineMs = closeMs): Promise<void> {
    const { promise: isLate, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(resolve, deadlineMs, true);
    const isGivenUp = await Promise.race([isLate, this.flush().then(() => false)]);
    clearTimeout(timer);
    this.#isClosed = true;
    if (isGivenUp) this.#giveUp();
    else if (this.#target !== "-") closeSync(this.#fd);
  }

  /** Counts the waiting lines as dropped. The file stays open, because a thread may hang in a write to it. */
  #giveUp(): void {
    this.#isGivenUp = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const chunks = [this.#writingChunk, ...this.#full, this.#filling];
    for (const chunk of chunks) if (chunk !== undefined) this.#dropped += linesIn(chunk.lines);
    this.#dropped += this.#group.length;
    this.#full.length = 0;
    this.#filling = undefined;
    this.#group = [];
  }

  #makeLines(): void {
    const lines = this.#group;
    if (lines.length === 0) return;
    this.#group = [];
    for (const { value, write } of lines)
      if (this.#filling?.add(value, write) !== 0 && !this.#addToNext(value, write)) this.#dropped += 1;
  }

  /** Adds a line to a new chunk. Returns false if too many chunks wait. */
  #addToNext(value: unknown, write: WriteBytes<unknown>): boolean {
    // One more is being written.
    if (this.#full.length >= chunksMax - 2) return false;
    if (this.#filling !== undefined) this.#full.push(this.#filling);
    this.#filling = this.#free ?? new LineChunk(chunkBytes);
    this.#free = undefined;
    const missing = this.#filling.add(value, write);
    if (missing > 0) {
      // Only long headers that must be escaped make so long a line.
      this.#filling = new LineChunk(chunkBytes + missing);
      this.#filling.add(value, write);
    }
    if (this.#full.length > 0) this.#begin();
    return true;
  }

  #beginLater(): void {
    this.#timer ??= setTimeout(() => this.#begin(), flushMs).unref();
  }

  #begin(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#makeLines();
    if (this.#writing !== undefined) return;
    const chunk = this.#full.shift() ?? this.#filling;
    if (chunk === undefined || chunk.isEmpty) return;
    if (chunk === this.#filling) this.#filling = undefined;
    this.#writingChunk = chunk;
    this.#writing = this.#append(chunk.lines).finally(() => {
      this.#writingChunk = undefined;
      chunk.clear();
      this.#free = chunk;
      this.#writing = undefined;
      if (this.#full.length > 0) this.#begin();
      else if (this.#filling !== undefined) this.#beginLater();
    });
  }

  /** Writes bytes that end with a line feed. Never rejects: lines that cannot be written are counted. */
  async #append(bytes: Buffer): Promise<void> {
    let at = 0;
    try {
      while (this.#isTorn && !this.#isGivenUp)
        this.#isTorn = (await writeSome(this.#fd, lineFeedBytes, 0)) === 0;
      while (at < bytes.length && !this.#isGivenUp) at += await writeSome(this.#fd, bytes, at);
      this.#isFailing = false;
    } catch (error) {
      if (this.#isGivenUp) return;
      this.#dropped += linesIn(bytes.subarray(at));
      this.#isTorn ||= at > 0 && bytes[at - 1] !== lineFeed;
      if (!this.#isFailing) this.#onError(error as Error);
      this.#isFailing = true;
    }
  }
}

const linesIn = (bytes: Buffer): number =>
  bytes.reduce((count, byte) => count + Number(byte === lineFeed), 0);

/** The log shows who visited what, so only the owner of the file may read it. */
const open = (target: string): number => (target === "-" ? 1 : openSync(target, "a", 0o600));

/** Resolves with the number of bytes that were written. A pipe may take a part, or none while it is full. */
const writeSome = (fd: number, bytes: Buffer, at: number): Promise<number> =>
  new Promise((resolve, reject) => {
    write(fd, bytes, at, bytes.length - at, null, (error, count) => {
      if (error === null) resolve(count);
      else if (error.code === "EAGAIN") setTimeout(resolve, 10, 0);
      else reject(error);
    });
  });
