/** Namespaces whose files are being worked on: calls of their objects wait. */
export class Pauses {
  /** Ends of the work. */
  readonly #paused = new Map<string, Promise<void>>();

  /** Resolves when the work on the files of a namespace has ended; undefined if there is none. */
  over(namespace: string): Promise<void> | undefined {
    return this.#paused.get(namespace);
  }

  /** Runs work, after other work on the namespace. */
  async during<T>(namespace: string, work: () => Promise<T>): Promise<T> {
    while (this.#paused.has(namespace)) await this.#paused.get(namespace);
    const over = Promise.withResolvers<void>();
    this.#paused.set(namespace, over.promise);
    try {
      return await work();
    } finally {
      this.#paused.delete(namespace);
      over.resolve();
    }
  }
}
