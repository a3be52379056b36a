/** The methods that Map and lru-cache share. */
interface Values<K, V> {
  get(key: K): V | undefined;
  set(key: K, value: V): unknown;
  delete(key: K): boolean;
  entries(): Iterable<[K, V]>;
}

/**
 * A cache that loads values at first use and keeps them until they are forgotten. If `forget` is called
 * during a load, waiting callers get the loaded value, but it is not cached, because it may be older than the
 * change.
 */
export class LoadingCache<K, V> {
  readonly #values: Values<K, V>;
  readonly #loading = new Map<K, Promise<V | undefined>>();

  constructor(values: Values<K, V> = new Map<K, V>()) {
    this.#values = values;
  }

  peek(key: K): V | undefined {
    return this.#values.get(key);
  }

  /** Returns the cached value, or loads it once for all concurrent callers. `undefined` is not cached. */
  async get(key: K, load: () => Promise<V | undefined>): Promise<V | undefined> {
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    const inFlight = this.#loading.get(key);
    if (inFlight !== undefined) return inFlight;
    const loading = load()
      .then((value) => {
        if (value !== undefined && this.#loading.get(key) === loading) this.#values.set(key, value);
        return value;
      })
      .finally(() => {
        if (this.#loading.get(key) === loading) this.#loading.delete(key);
      });
    this.#loading.set(key, loading);
    return loading;
  }

  /** Removes the values that match; without an argument, removes all. */
  forget(isGone: (value: V, key: K) => boolean = () => true): void {
    this.#loading.clear();
    for (const [key, value] of [...this.#values.entries()]) if (isGone(value, key)) this.#values.delete(key);
  }
}

/**
 * Options of an `LRUCache` with at most this many entries. Its option `max` would allocate the arrays for all of them
 * when the cache is created: 8 MB for an empty platform.
 */
export const entriesMax = (count: number): { maxSize: number; sizeCalculation: () => number } => ({
  maxSize: count,
  sizeCalculation: () => 1,
});
