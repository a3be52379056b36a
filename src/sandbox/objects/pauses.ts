/** Objects whose files are being worked on: calls of them wait. */
export class Pauses {
  /** Ends of the work, by object. */
  readonly #paused = new Map<string, Promise<void>>();

  /** Resolves when the work on the files of an object has ended; undefined if there is none. */
  over(object: string): Promise<void> | undefined {
    return this.#paused.get(object);
  }

  /** Runs work, after other work on the object. */
  async during<T>(object: string, work: () => Promise<T>): Promise<T> {
    while (this.#paused.has(object)) await this.#paused.get(object);
    const over = Promise.withResolvers<void>();
    this.#paused.set(object, over.promise);
    try {
      return await work();
    } finally {
      this.#paused.delete(object);
      over.resolve();
    }
  }
}
