const sliceMs = 1000;

/**
 * Keeps things for a while after they have ended, under their keys. They go a second's worth at a time, so that each costs no more
 * when there are very many, and nothing that grows is kept.
 */
export class Linger<T> {
  /** The latest last. */
  readonly #slices: { since: number; things: Map<string, T> }[] = [];
  readonly #ms: number;

  constructor(ms: number) {
    this.#ms = ms;
  }

  /** The times are those of one clock, in milliseconds. */
  put(key: string, thing: T, now: number): void {
    this.#expire(now);
    const last = this.#slices.at(-1);
    if (last !== undefined && now - last.since < sliceMs) last.things.set(key, thing);
    else this.#slices.push({ since: now, things: new Map([[key, thing]]) });
  }

  /** What was put last under the key, while its time is not over. */
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
