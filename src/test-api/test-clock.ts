import { setTime } from "../platform/timers/clock.ts";

/** "real": time passes. "frozen": it stands still. "skip": it jumps to the next due work whenever none runs. */
export type ClockMode = "real" | "frozen" | "skip";

/** The clock at the time of a snapshot. In real mode the offset is restored, so time goes on meanwhile. */
export interface SavedTime {
  mode: ClockMode;
  offsetMs: number;
  stoodMs: number;
}

/** A time as the control surface shows it. */
export interface ShownTime {
  now: string;
  mode: ClockMode;
}

/** The time that a platform has if this state is restored. */
export const shownTime = ({ mode, offsetMs, stoodMs }: SavedTime): ShownTime => ({
  now: new Date(mode === "real" ? Date.now() + offsetMs : stoodMs).toISOString(),
  mode,
});

/** The clock of a platform under test. It goes back only when a state is restored. */
export class MovableClock {
  mode: ClockMode = "real";
  /** In real mode: milliseconds from the system's time to the platform's. */
  #offsetMs = 0;
  /** In the other modes: the time. */
  #stoodMs = 0;

  /** Sets the platform's clock from now on, until `close`. */
  open(mode: ClockMode, startMs = Date.now()): void {
    this.mode = mode;
    this.set(startMs);
    setTime(() => this.now());
  }

  close(): void {
    setTime();
  }

  now(): number {
    return this.mode === "real" ? Date.now() + this.#offsetMs : this.#stoodMs;
  }

  /** Milliseconds from the system's time to the platform's. */
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

  isAfter({ mode, offsetMs, stoodMs }: SavedTime): boolean {
    return this.now() > (mode === "real" ? Date.now() + offsetMs : stoodMs);
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
