import type { Clock } from "./clock.ts";

/** Those who wait for something to happen to instances. */
export class Watchers {
  readonly #clock: Clock;
  readonly #waiting = new Map<number, Set<() => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when it happens, or the time is over. */
  async next(rid: number, timeoutMs: number): Promise<void> {
    const waiting = this.#waiting.get(rid) ?? new Set();
    this.#waiting.set(rid, waiting);
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.add(resolve);
    const cancel = this.#clock.after(timeoutMs, resolve);
    await promise;
    cancel();
    waiting.delete(resolve);
    if (waiting.size === 0 && this.#waiting.get(rid) === waiting) this.#waiting.delete(rid);
  }

  tell(rid: number): void {
    for (const go of this.#waiting.get(rid) ?? []) go();
  }
}
