import { closeSync, openSync, write } from "node:fs";
import { mebibyte } from "../bytes.ts";

/** Lines up to this size wait for a slow file; further ones are dropped and counted. */
const waitingBytesMax = 4 * mebibyte;
/** Lines are joined up to this size for one write. */
const writeBytes = 64 * 1024;
const flushMs = 1000;
const lineFeed = 0x0a;

/** Appends lines to a file, many at a time. `add` neither blocks nor throws. */
export class LineWriter {
  /** The path, or "-" for standard output. */
  readonly #target: string;
  readonly #onError: (error: Error) => void;
  #fd: number;
  #lines: string[] = [];
  #lineBytes = 0;
  #waitingBytes = 0;
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

  /** Adds a line, which ends with its line feed. */
  add(line: string): void {
    if (this.#isClosed || this.#waitingBytes > waitingBytesMax) {
      this.#dropped += 1;
      return;
    }
    this.#lines.push(line);
    this.#lineBytes += line.length;
    this.#waitingBytes += line.length;
    if (this.#lineBytes >= writeBytes) this.#begin();
    else this.#timer ??= setTimeout(() => this.#begin(), flushMs).unref();
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

  #begin(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#writing !== undefined || this.#lines.length === 0) return;
    const lines = this.#lines;
    this.#lines = [];
    this.#lineBytes = 0;
    const bytes = Buffer.from((this.#isTorn ? "\n" : "") + lines.join(""), "utf8");
    this.#writing = this.#append(bytes).finally(() => {
      for (const line of lines) this.#waitingBytes -= line.length;
      this.#writing = undefined;
      if (this.#lineBytes >= writeBytes) this.#begin();
    });
  }

  /** Writes bytes that end with a line feed. Never rejects: lines that cannot be written are counted. */
  async #append(bytes: Buffer): Promise<void> {
    let at = 0;
    try {
      while (at < bytes.length) at += await writeSome(this.#fd, bytes, at);
      this.#isTorn = false;
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
