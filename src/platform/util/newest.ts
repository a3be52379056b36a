/**
 * The values that were added last, by key. A map alone would become slow: V8 walks over all entries that were deleted
 * lately to find the oldest one.
 */
export class Newest<T> {
  readonly #max: number;
  readonly #values = new Map<string, T>();
  /** The keys, in a ring: the oldest one is at `#next` when it is full. */
  readonly #keys: string[] = [];
  #next = 0;

  /** Keeps `max` values. */
  constructor(max: number) {
    this.#max = max;
  }

  /** Adds a value under a new key. */
  add(key: string, value: T): void {
    const oldest = this.#keys[this.#next];
    if (oldest !== undefined) this.#values.delete(oldest);
    this.#keys[this.#next] = key;
    this.#values.set(key, value);
    this.#next = (this.#next + 1) % this.#max;
  }

  get(key: string): T | undefined {
    return this.#values.get(key);
  }
}
