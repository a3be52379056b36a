import { LRUCache } from "lru-cache";
import { randomText } from "../util/ids.ts";
import { entriesMax } from "../util/loading-cache.ts";

/** Things that another process refers to by a name, such as the rest of a request's way. The oldest are forgotten. */
export class Kept<Thing extends object> {
  readonly #things = new LRUCache<string, Thing>(entriesMax(20_000));
  readonly #names = new WeakMap<Thing, string>();

  /** The name of a thing, which it keeps. */
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
