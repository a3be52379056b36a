import { LRUCache } from "lru-cache";
import { randomText } from "../util/ids.ts";
import { entriesMax } from "../util/loading-cache.ts";

/** Values that another process refers to by name, such as the remaining handlers of a request. Drops the oldest. */
export class Kept<Thing extends object> {
  readonly #things = new LRUCache<string, Thing>(entriesMax(20_000));
  readonly #names = new WeakMap<Thing, string>();

  /** Keeps a value, and returns its name. */
  nameOf(thing: Thing): string {
    let name = this.#names.get(thing);
    if (name === undefined) this.#names.set(thing, (name = randomText(16, "base64url")));
    this.#things.set(name, thing);
    return name;
  }

  find(name: string): Thing | undefined {
    return this.#things.get(name);
  }

  forget(name: string): void {
    this.#things.delete(name);
  }
}
