import { randomText } from "../util/ids.ts";

/**
 * Values that another process refers to by name, such as the remaining handlers of a request. Each is found for as
 * long as another part of this process holds it.
 */
export class Kept<Thing extends object> {
  readonly #things = new Map<string, WeakRef<Thing>>();
  readonly #names = new WeakMap<Thing, string>();
  readonly #gone = new FinalizationRegistry<string>((name) => this.#things.delete(name));

  /** Names a value. */
  nameOf(thing: Thing): string {
    let name = this.#names.get(thing);
    if (name === undefined) {
      name = randomText(16, "base64url");
      this.#names.set(thing, name);
      this.#things.set(name, new WeakRef(thing));
      this.#gone.register(thing, name);
    }
    return name;
  }

  find(name: string): Thing | undefined {
    return this.#things.get(name)?.deref();
  }

  /** The number of things with a name. */
  get size(): number {
    return this.#things.size;
  }
}
