import { closeSync, openSync, readSync } from "node:fs";

/** How often, at the least, the kernel writes down what a thread has used that runs without a break: 100 to 1,000 Hz are usual. */
export const tickMsMax = 10;

/** What it is here, as far as has been seen: what a thread that ran without a break used between two writings. */
let tickSeenMs: number | undefined;

/** CPU time of a process's main thread. NaN when it is gone. */
export class CpuClock {
  readonly #schedstat: number;
  readonly #status: number;
  readonly #buffer = Buffer.alloc(4096);
  #isOpen = true;
  /** What was read last, and since when it has been so. */
  #written = "";
  #writtenAt = 0;
  /** Times that the thread was put on a processor, as it is said, and taken off. */
  #on = 0;
  #off = 0;
  /** How many more often on than off while it runs: the kernel does not count every time that it was put on. */
  #ahead: number | undefined;

  constructor(pid: number) {
    this.#schedstat = openSync(`/proc/${pid}/schedstat`, "r");
    this.#status = openSync(`/proc/${pid}/status`, "r");
  }

  /** As the kernel has written it down: where the thread runs at this moment, up to a tick is missing. */
  writtenMs(): number {
    return msOf(this.#read(this.#schedstat));
  }

  /** With what has come since, where it is certain that the thread has run meanwhile. Takes twice as long. */
  nowMs(): number {
    const written = this.#read(this.#schedstat);
    const [on, off] = [Number(written.split(" ")[2]), switchesOf(this.#read(this.#status))];
    const now = performance.now();
    if (written !== this.#written) {
      // Neither on nor off since the last time, and yet there is more: it was running.
      if (on === this.#on && off === this.#off) {
        this.#ahead = on - off;
        const usedMs = Math.min(msOf(written) - msOf(this.#written), tickMsMax);
        tickSeenMs = tickSeenMs === undefined ? usedMs : 0.8 * tickSeenMs + 0.2 * usedMs;
      }
      [this.#written, this.#writtenAt] = [written, now];
    }
    [this.#on, this.#off] = [on, off];
    // More than a tick would have been written: the machine that this one is part of has taken its processor away.
    const sinceMs = on - off === this.#ahead ? Math.min(now - this.#writtenAt, tickSeenMs ?? 0) : 0;
    return msOf(written) + sinceMs;
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    closeSync(this.#schedstat);
    closeSync(this.#status);
  }

  #read(file: number): string {
    if (!this.#isOpen) return "";
    try {
      return this.#buffer.toString("latin1", 0, readSync(file, this.#buffer, 0, this.#buffer.length, 0));
    } catch {
      return "";
    }
  }
}

const msOf = (schedstat: string): number =>
  schedstat === "" ? Number.NaN : Number(schedstat.slice(0, schedstat.indexOf(" "))) / 1e6;

/** How often a thread was taken off a processor, as its `status` says. */
const switchesOf = (status: string): number => {
  const each = /^voluntary_ctxt_switches:\s*(\d+)\s+nonvoluntary_ctxt_switches:\s*(\d+)/m.exec(status);
  return Number(each?.[1]) + Number(each?.[2]);
};
