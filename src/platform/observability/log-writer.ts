import { write, writeSync } from "node:fs";

/** Lines that wait for a slow reader. Further lines are dropped. */
const waitingMax = 4 * 1024 * 1024;
const busyPauseMs = 50;
/** How long an exiting process tries to write its last lines. */
const exitMsMax = 1000;

/**
 * Writes lines to a descriptor, in order and without making their writer wait. Drops what a full disk or a reader that
 * has gone does not take: the program goes on without a log, and ends without it.
 */
export class LogWriter {
  readonly #fd: number;
  #waiting: string[] = [];
  #waitingLength = 0;
  /** The lines of the current write; empty without one. */
  #writing: Buffer = Buffer.alloc(0);
  #isInFlight = false;

  constructor(fd: number) {
    this.#fd = fd;
    process.on("exit", () => this.#writeLast());
  }

  write(line: string): void {
    if (this.#waitingLength > waitingMax) return;
    this.#waiting.push(line);
    this.#waitingLength += line.length;
    if (this.#writing.length === 0) this.#writeOn();
  }

  #writeOn(): void {
    if (this.#writing.length === 0) this.#writing = this.#takeWaiting();
    if (this.#writing.length === 0) return;
    this.#isInFlight = true;
    write(this.#fd, this.#writing, (error, written) => {
      this.#isInFlight = false;
      if (isBusy(error)) {
        setTimeout(() => this.#writeOn(), busyPauseMs).unref();
        return;
      }
      this.#writing = this.#writing.subarray(error === null ? written : Infinity);
      this.#writeOn();
    });
  }

  #takeWaiting(): Buffer {
    const taken = Buffer.from(this.#waiting.join(""));
    this.#waiting = [];
    this.#waitingLength = 0;
    return taken;
  }

  #writeLast(): void {
    let left = Buffer.concat([
      this.#isInFlight ? Buffer.alloc(0) : this.#writing, // the thread pool ends a write in flight
      this.#takeWaiting(),
    ]);
    const endMs = performance.now() + exitMsMax;
    while (left.length > 0 && performance.now() < endMs)
      try {
        left = left.subarray(writeSync(this.#fd, left));
      } catch (error) {
        if (!isBusy(error)) return;
      }
  }
}

const isBusy = (error: unknown): boolean =>
  ["EAGAIN", "EBUSY"].includes((error as NodeJS.ErrnoException | null)?.code ?? "");
