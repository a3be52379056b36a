/** Runs asynchronous functions one after another. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  async take<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }
}
