import { closeSync, openSync, readSync } from "node:fs";

/** The longest interval at which kernels update the CPU time of a running thread: 100 to 1,000 Hz are usual. */
export const tickMsMax = 10;

/** The interval observed on this machine: the increase between two updates for a thread that ran without a break. */
let tickSeenMs: number | undefined;

/** CPU time of a process's main thread, from /proc. NaN after the process has ended. */
export class CpuClock {
  readonly #schedstat: number;
  readonly #status: number;
  readonly #buffer = Buffer.alloc(4096);
  #isOpen = true;
  /** The last value of schedstat, and the time when it was first seen. */
  #written = "";
  #writtenAt = 0;
  /** How often the thread was scheduled in (schedstat) and out (status). */
  #on = 0;
  #off = 0;
  /**
   * The difference of the two counts while the thread runs. It is not 1: the kernel does not count every time
   * that a thread is scheduled in.
   */
  #ahead: number | undefined;

  constructor(pid: number) {
    this.#schedstat = openSync(`/proc/${pid}/schedstat`, "r");
    this.#status = openSync(`/proc/${pid}/status`, "r");
  }

  /** CPU time as last updated by the kernel; for a running thread up to one tick is missing. */
  writtenMs(): number {
    return msOf(this.#read(this.#schedstat));
  }

  /**
   * CPU time including the time since the last update, if the thread was certainly running. Takes twice as
   * long as `writtenMs`.
   */
  nowMs(): number {
    const written = this.#read(this.#schedstat);
    const [on, off] = [Number(written.split(" ")[2]), switchesOf(this.#read(this.#status))];
    const now = performance.now();
    if (written !== this.#written) {
      // The counts did not change but the CPU time did: the thread was running all the time.
      if (on === this.#on && off === this.#off) {
        this.#ahead = on - off;
        const usedMs = Math.min(msOf(written) - msOf(this.#written), tickMsMax);
        tickSeenMs = tickSeenMs === undefined ? usedMs : 0.8 * tickSeenMs + 0.2 * usedMs;
      }
      [this.#written, this.#writtenAt] = [written, now];
    }
    [this.#on, this.#off] = [on, off];
    // The kernel would have recorded more than a tick. Without an update the host of this virtual machine has
    // taken the processor away.
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

/** How often a thread was scheduled out, from /proc/PID/status. */
const switchesOf = (status: string): number => {
  const each = /^voluntary_ctxt_switches:\s*(\d+)\s+nonvoluntary_ctxt_switches:\s*(\d+)/m.exec(status);
  return Number(each?.[1]) + Number(each?.[2]);
};
