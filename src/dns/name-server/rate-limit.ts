import { addressBytes } from "./wire/address.ts";

export type RateLimitAction = "answer" | "truncate" | "drop";

const prefixesMax = 100_000;
/**
 * Every second response over the rate is truncated instead of dropped, so that a genuine client can retry
 * over TCP.
 */
const slip = 2;

interface Bucket {
  tokens: number;
  atMs: number;
  suppressed: number;
}

/**
 * Response rate limiting. Many similar responses to one network suggest that its addresses are spoofed for a
 * flood. Each network has a token bucket for each class of response.
 */
export class ResponseRateLimit {
  readonly #perSecond: number;
  readonly #buckets = new Map<string, Bucket>();

  /** Responses of one class to one network in a second; 0 for no limit. */
  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /** Loopback addresses are not limited, because they cannot be spoofed from outside. */
  isLimited(address: string): boolean {
    return this.#perSecond > 0 && !isLoopback(address);
  }

  /** `kind` is the class of the response, from `kindOf` in responder.ts. */
  check(address: string, kind: string, nowMs: number): RateLimitAction {
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

  /** Removes buckets that have refilled. If that is not enough, removes all, to bound memory. */
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
