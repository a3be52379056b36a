const sliceMs = 1000;

/**
 * Keeps values for a fixed time after they have ended, by key. Values expire in slices, one for each second,
 * so that the cost of each stays constant and memory is bounded.
 */
export class Linger<T> {
  /** The newest slice is last. */
  readonly #slices: { since: number; things: Map<string, T> }[] = [];
  readonly #ms: number;

  constructor(ms: number) {
    this.#ms = ms;
  }

  /** `now` is in milliseconds of one clock. */
  put(key: string, thing: T, now: number): void {
    this.#expire(now);
    const last = this.#slices.at(-1);
    if (last !== undefined && now - last.since < sliceMs) last.things.set(key, thing);
    else this.#slices.push({ since: now, things: new Map([[key, thing]]) });
  }

  /** The last value put under the key, unless it has expired. */
  get(key: string, now: number): T | undefined {
    this.#expire(now);
    for (let i = this.#slices.length - 1; i >= 0; i--) {
      const thing = this.#slices[i]!.things.get(key);
      if (thing !== undefined) return thing;
    }
    return undefined;
  }

  #expire(now: number): void {
    while (this.#slices.length > 0 && now - this.#slices[0]!.since > this.#ms + sliceMs) this.#slices.shift();
  }
}
