import { objectQueuedMax } from "../protocol.ts";
import { tooManyQueued } from "./faults.ts";
import { objectKeyOf, type ActingObject } from "./standing.ts";

/** Counts the requests of each object that the gateway has sent, and refuses more than an object may have. */
export class WaitingRequests {
  /** By object. */
  readonly #counts = new Map<string, number>();

  /** Counts a request. Returns the function that ends it. */
  enter(object: ActingObject): () => void {
    const key = objectKeyOf(object);
    const before = this.#counts.get(key) ?? 0;
    if (before >= objectQueuedMax) throw tooManyQueued();
    this.#counts.set(key, before + 1);
    return () => {
      const now = this.#counts.get(key)! - 1;
      if (now === 0) this.#counts.delete(key);
      else this.#counts.set(key, now);
    };
  }

  /** Counts a request while it is worked on. */
  async during<T>(object: ActingObject, work: () => Promise<T>): Promise<T> {
    const leave = this.enter(object);
    try {
      return await work();
    } finally {
      leave();
    }
  }
}
