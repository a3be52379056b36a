import type { Clock } from "../../../platform/timers/clock.ts";

/** Callers that wait for a notification about an instance. */
export class Watchers {
  readonly #clock: Clock;
  readonly #waiting = new Map<number, Set<() => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves with true on the next notification, or with false after `timeoutMs`. */
  async next(rid: number, timeoutMs: number): Promise<boolean> {
    const waiting = this.#waiting.get(rid) ?? new Set();
    this.#waiting.set(rid, waiting);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const happened = (): void => resolve(true);
    waiting.add(happened);
    const cancel = this.#clock.after(timeoutMs, () => resolve(false));
    const hasHappened = await promise;
    cancel();
    waiting.delete(happened);
    if (waiting.size === 0 && this.#waiting.get(rid) === waiting) this.#waiting.delete(rid);
    return hasHappened;
  }

  notify(rid: number): void {
    for (const go of this.#waiting.get(rid) ?? []) go();
  }
}
