import { Turns } from "../../util/turns.ts";

/**
 * Reads what a service keeps in memory, one read at a time, so that an older result never replaces a newer one.
 * `install` puts a result into fresh maps, at once.
 */
export class FreshReads<T> {
  readonly #read: () => Promise<T>;
  readonly #install: (result: T) => void;
  readonly #turns = new Turns();
  #reads = 0;
  #installed = 0;

  constructor(read: () => Promise<T>, install: (result: T) => void) {
    this.#read = read;
    this.#install = install;
  }

  async load(): Promise<void> {
    (await this.reload())();
  }

  /** For `Storage.onChange`. */
  readonly reload = async (): Promise<() => void> => {
    const { number, result } = await this.#turns.take(async () => ({
      number: ++this.#reads,
      result: await this.#read(),
    }));
    return () => {
      if (number < this.#installed) return;
      this.#installed = number;
      this.#install(result);
    };
  };
}
