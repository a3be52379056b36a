import { setTime } from "../platform/timers/clock.ts";

/** Real: time passes, maybe from another beginning. Frozen: it stands. Skip: it jumps to the next due work when none runs. */
export type ClockMode = "real" | "frozen" | "skip";

/** The time when a snapshot was made. In real mode, it goes on while the snapshot is kept. */
export interface SavedTime {
  mode: ClockMode;
  offsetMs: number;
  stoodMs: number;
}

/** The clock of a platform under test. It goes back only when a state is restored. */
export class MovableClock {
  mode: ClockMode = "real";
  /** From the system's time to the platform's; in real mode. */
  #offsetMs = 0;
  /** The time; in the other modes. */
  #stoodMs = 0;

  /** Sets the platform's clock from now on, until `close`. */
  open(startMs = Date.now()): void {
    this.set(startMs);
    setTime(() => this.now());
  }

  close(): void {
    setTime();
  }

  now(): number {
    return this.mode === "real" ? Date.now() + this.#offsetMs : this.#stoodMs;
  }

  /** The time after the system's. */
  get offsetMs(): number {
    return this.now() - Date.now();
  }

  set(nowMs: number): void {
    this.#offsetMs = nowMs - Date.now();
    this.#stoodMs = nowMs;
  }

  save(): SavedTime {
    return { mode: this.mode, offsetMs: this.#offsetMs, stoodMs: this.#stoodMs };
  }

  restore({ mode, offsetMs, stoodMs }: SavedTime): void {
    this.mode = mode;
    this.#offsetMs = offsetMs;
    this.#stoodMs = stoodMs;
  }

  change(mode: ClockMode): void {
    const now = this.now();
    this.mode = mode;
    this.set(now);
  }
}
