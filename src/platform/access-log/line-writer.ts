import { closeSync, openSync, write } from "node:fs";
import { LineChunk } from "./line-chunk.ts";

/** Lines are written together in chunks of this size, because each write wakes another thread. */
const chunkBytes = 256 * 1024;
/** Lines wait for a slow file in at most this many chunks, 4 MiB; further ones are dropped and counted. */
const chunksMax = 16;
const flushMs = 1000;
const lineFeed = 0x0a;
const lineFeedBytes = Buffer.of(lineFeed);

/**
 * Appends lines to a file, many at a time. `add` neither blocks nor throws. It turns a line into bytes at once: a text
 * would outlive its request, and the garbage collector would copy it.
 */
export class LineWriter {
  /** The path, or "-" for standard output. */
  readonly #target: string;
  readonly #onError: (error: Error) => void;
  #fd: number;
  #filling: LineChunk | undefined;
  /** Chunks without room, the oldest first. */
  readonly #full: LineChunk[] = [];
  /** A written chunk, for reuse. */
  #free: LineChunk | undefined;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #isClosed = false;
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

  /** Adds a line in ASCII, which ends with its line feed. */
  add(line: string): void {
    if (this.#isClosed || !(this.#filling?.add(line) === true || this.#addToNext(line))) {
      this.#dropped += 1;
      return;
    }
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

  /** Writes the waiting lines and closes the file. Later lines are counted as dropped. */
  async close(): Promise<void> {
    await this.flush();
    this.#isClosed = true;
    if (this.#target !== "-") closeSync(this.#fd);
  }

  /** Adds a line to a new chunk. Returns false if too many chunks wait. */
  #addToNext(line: string): boolean {
    // One more is being written.
    if (this.#full.length >= chunksMax - 2) return false;
    if (this.#filling !== undefined) this.#full.push(this.#filling);
    this.#filling = this.#free ?? new LineChunk(chunkBytes);
    this.#free = undefined;
    // Only long headers that must be escaped make so long a line.
    if (!this.#filling.add(line)) {
      this.#filling = new LineChunk(line.length);
      this.#filling.add(line);
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
    if (this.#writing !== undefined) return;
    const chunk = this.#full.shift() ?? this.#filling;
    if (chunk === undefined || chunk.isEmpty) return;
    if (chunk === this.#filling) this.#filling = undefined;
    this.#writing = this.#append(chunk.lines).finally(() => {
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
      while (this.#isTorn) this.#isTorn = (await writeSome(this.#fd, lineFeedBytes, 0)) === 0;
      while (at < bytes.length) at += await writeSome(this.#fd, bytes, at);
      this.#isFailing = false;
    } catch (error) {
      const rest = bytes.subarray(at);
      this.#dropped += rest.reduce((count, byte) => count + Number(byte === lineFeed), 0);
      this.#isTorn ||= at > 0 && bytes[at - 1] !== lineFeed;
      if (!this.#isFailing) this.#onError(error as Error);
      this.#isFailing = true;
    }
  }
}

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
