import { createHash } from "node:crypto";
import type { Epochs, Cause } from "./epochs.ts";

/**
 * Ids that follow from the seed and from the request that creates them: its method, path and body. So calls in another
 * order create the same ids. Of equal requests, each has a number.
 */
export class SeededIds {
  readonly #seed: string;
  readonly #epochs: Epochs;
  /** The number of requests by key. */
  #equal = new Map<string, number>();
  /** Ids of the platform's own work. */
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

  /** The body of the request is known. */
  identify(origin: Cause, body: unknown): void {
    const key = `${origin.key} ${body === undefined ? "" : JSON.stringify(body)}`;
    const before = this.#equal.get(key) ?? 0;
    this.#equal.set(key, before + 1);
    origin.key = `${key} ${before}`;
    origin.ids = 0;
  }

  /** For `restore`. */
  save(): SavedIds {
    return { equal: new Map(this.#equal), own: this.#own };
  }

  restore({ equal, own }: SavedIds): void {
    this.#equal = new Map(equal);
    this.#own = own;
  }
}

/** The requests before a snapshot. */
export interface SavedIds {
  equal: ReadonlyMap<string, number>;
  own: number;
}
