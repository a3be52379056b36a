import { createHash } from "node:crypto";
import type { Epochs, Cause } from "./epochs.ts";

/**
 * Creates ids from the seed and from the request that needs them (its method, path and body), so calls in another order
 * create the same ids. Equal requests are numbered.
 */
export class SeededIds {
  readonly #seed: string;
  readonly #epochs: Epochs;
  /** Number of equal requests, by key. */
  #equal = new Map<string, number>();
  /** Number of ids that the platform's own work has created. */
  #own = 0;

  constructor(seed: string, epochs: Epochs) {
    this.#seed = seed;
    this.#epochs = epochs;
  }

  /** A UUID of version 4. */
  readonly next = (): string => {
    const { origin } = this.#epochs;
    const name = origin === undefined ? `own ${this.#own++}` : `${origin.key} ${origin.ids++}`;
    const hex = createHash("sha256").update(`${this.#seed}\n${name}`).digest("hex");
    const variant = ((Number.parseInt(hex[16]!, 16) & 3) | 8).toString(16);
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  };

  /** Adds the body, once it is read, to the request's key. */
  identify(origin: Cause, body: unknown): void {
    const key = `${origin.key} ${body === undefined ? "" : JSON.stringify(body)}`;
    const before = this.#equal.get(key) ?? 0;
    this.#equal.set(key, before + 1);
    origin.key = `${key} ${before}`;
    origin.ids = 0;
  }

  /** The counters for a later `restore`. */
  save(): SavedIds {
    return { equal: new Map(this.#equal), own: this.#own };
  }

  restore({ equal, own }: SavedIds): void {
    this.#equal = new Map(equal);
    this.#own = own;
  }
}

/** The counters at the time of a snapshot. */
export interface SavedIds {
  equal: ReadonlyMap<string, number>;
  own: number;
}
