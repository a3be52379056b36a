import { closeSync, openSync, readSync } from "node:fs";

const pageBytes = 4096;

/** Reads the resident memory of a process. Its file stays open, because a look is needed every 10 ms. */
export class MemoryGauge {
  readonly #statm: number;
  readonly #buffer = Buffer.alloc(256);
  #isOpen = true;

  constructor(pid: number) {
    this.#statm = openSync(`/proc/${pid}/statm`, "r");
  }

  /** Resident memory; NaN after the process has ended. */
  rssBytes(): number {
    if (!this.#isOpen) return Number.NaN;
    try {
      const length = readSync(this.#statm, this.#buffer, 0, this.#buffer.length, 0);
      return Number(this.#buffer.toString("latin1", 0, length).split(" ", 2)[1]) * pageBytes;
    } catch {
      return Number.NaN;
    }
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    closeSync(this.#statm);
  }
}
