import { addressBytes } from "./wire/address.ts";

export type Verdict = "answer" | "truncate" | "drop";

const prefixesMax = 100_000;
/** Every second answer beyond the rate is a truncated one, so that a client that is real gets through by TCP. */
const slip = 2;

interface Bucket {
  tokens: number;
  atMs: number;
  suppressed: number;
}

/**
 * Response-rate limiting: a network that gets many like answers is perhaps not asking, but is being flooded by someone
 * who gives its addresses as the sender's. Each network has tokens for each class of answer.
 */
export class ResponseRateLimit {
  readonly #perSecond: number;
  readonly #buckets = new Map<string, Bucket>();

  /** 0 is no limit. */
  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /** This machine's own addresses are not limited: nobody outside can send from there. */
  isLimited(address: string): boolean {
    return this.#perSecond > 0 && !isLoopback(address);
  }

  /** `kind` is the class of the answer: its code, and for negative ones and referrals the zone. */
  check(address: string, kind: string, nowMs: number): Verdict {
    const key = `${prefixOf(address)} ${kind}`;
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      if (this.#buckets.size >= prefixesMax) this.#forget(nowMs);
      bucket = { tokens: this.#perSecond, atMs: nowMs, suppressed: 0 };
      this.#buckets.set(key, bucket);
    }
    const gained = ((nowMs - bucket.atMs) / 1000) * this.#perSecond;
    bucket.tokens = Math.min(this.#perSecond, bucket.tokens + gained);
    bucket.atMs = nowMs;
    if (bucket.tokens >= 1) {
      bucket.tokens--;
      return "answer";
    }
    bucket.suppressed++;
    return bucket.suppressed % slip === 0 ? "truncate" : "drop";
  }

  /** Buckets that are full again say nothing; when none is, everything is forgotten rather than memory be used up. */
  #forget(nowMs: number): void {
    for (const [key, { atMs }] of this.#buckets) if (nowMs - atMs > 1000) this.#buckets.delete(key);
    if (this.#buckets.size >= prefixesMax) this.#buckets.clear();
  }
}

const isLoopback = (address: string): boolean =>
  address.startsWith("127.") || address === "::1" || address.startsWith("::ffff:127.");

function prefixOf(address: string): string {
  if (!address.includes(":")) return address.slice(0, address.lastIndexOf("."));
  if (address.startsWith("::ffff:") && address.includes(".")) return prefixOf(address.slice(7));
  return addressBytes(address).toString("latin1", 0, 7);
}
