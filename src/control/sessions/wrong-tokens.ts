import { LRUCache } from "lru-cache";
import { networkKey } from "../audit/refusals.ts";
import { clock } from "../../platform/timers/clock.ts";

const wrongMax = 5;
const windowMs = 60_000;
const addressesMax = 10_000;

/** Counts the wrong tokens of each address, or network of IPv6 addresses, in a minute. */
export class WrongTokens {
  readonly #counts = new LRUCache<string, { count: number; endsOn: number }>({ max: addressesMax });

  /** How long an address has to wait before its next attempt; 0 if it need not. */
  waitSeconds(address: string): number {
    const counted = this.#counts.get(networkKey(address));
    const now = clock.now();
    if (counted === undefined || counted.count < wrongMax || counted.endsOn <= now) return 0;
    return Math.ceil((counted.endsOn - now) / 1000);
  }

  /** Counts an attempt as wrong until `forgive`, so that attempts at the same time count too. */
  note(address: string): void {
    const now = clock.now();
    const counted = this.#counts.get(networkKey(address));
    if (counted === undefined || counted.endsOn <= now)
      this.#counts.set(networkKey(address), { count: 1, endsOn: now + windowMs });
    else counted.count++;
  }

  /** Takes back the count of an attempt that succeeded. */
  forgive(address: string): void {
    const counted = this.#counts.get(networkKey(address));
    if (counted !== undefined) counted.count = Math.max(0, counted.count - 1);
  }
}
