import { LRUCache } from "lru-cache";
import { clock } from "../../platform/timers/clock.ts";

const wrongMax = 5;
const windowMs = 60_000;
const addressesMax = 10_000;

/** Counts the wrong tokens of each address in the last minute. */
export class WrongTokens {
  readonly #counts = new LRUCache<string, { count: number; endsOn: number }>({ max: addressesMax });

  /** How long an address has to wait before its next attempt; 0 if it need not. */
  waitSeconds(address: string): number {
    const counted = this.#counts.get(address);
    const now = clock.now();
    if (counted === undefined || counted.count < wrongMax || counted.endsOn <= now) return 0;
    return Math.ceil((counted.endsOn - now) / 1000);
  }

  note(address: string): void {
    const now = clock.now();
    const counted = this.#counts.get(address);
    if (counted === undefined || counted.endsOn <= now)
      this.#counts.set(address, { count: 1, endsOn: now + windowMs });
    else counted.count++;
  }
}
