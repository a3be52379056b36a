import {
  ownLimit,
  type SharedLimit,
  type SharedRates,
} from "../../../platform/storage/nodes/shared-rates.ts";
import { clock } from "../../../platform/timers/clock.ts";

/** Limits calls in fixed windows, with one counter for each caller. With `rates`, approximately over all nodes. */
export class RateLimiter {
  readonly #limit: number;
  readonly #windowMs: number;
  readonly #now: () => number;
  readonly #shared: SharedLimit;
  readonly #counts = new Map<string, number>();
  #windowStartMs = 0;

  /** `limit` calls in `windowMs`; a limit of 0 allows everything. */
  constructor(
    limit: number,
    windowMs: number,
    now: () => number = clock.now,
    rates?: Pick<SharedRates, "share">,
  ) {
    this.#limit = limit;
    this.#windowMs = windowMs;
    this.#now = now;
    this.#shared =
      limit === 0 ? ownLimit : (rates?.share("api", (caller, calls) => this.#add(caller, calls)) ?? ownLimit);
  }

  /**
   * Counts one call, or a batch of `calls`. The first batch of a window is allowed even if it exceeds the
   * limit. Returns 0 if allowed, else the seconds until the next window.
   */
  take(caller: string, calls = 1): number {
    if (this.#limit === 0) return 0;
    const now = this.#now();
    this.#beginWindow(now);
    const before = this.#counts.get(caller) ?? 0;
    const counted = calls * this.#shared.weight;
    if (before === 0 || before + counted <= this.#limit) {
      this.#counts.set(caller, before + counted);
      this.#shared.note(caller, calls);
      return 0;
    }
    return Math.max(1, Math.ceil((this.#windowStartMs + this.#windowMs - now) / 1000));
  }

  /** Begins a new window with all counters at zero. */
  forget(): void {
    this.#counts.clear();
  }

  #beginWindow(now: number): void {
    if (now - this.#windowStartMs < this.#windowMs) return;
    this.#windowStartMs = now;
    this.#counts.clear();
  }

  /** Adds calls that other nodes have counted; a negative number corrects an earlier estimate. */
  #add(caller: string, calls: number): void {
    this.#beginWindow(this.#now());
    // A correction may concern the last window.
    this.#counts.set(caller, Math.max(0, (this.#counts.get(caller) ?? 0) + calls));
  }
}
