import { types } from "../wire/constants.ts";

/** The addresses found for a name outside our zones. */
export interface Resolved {
  /** Addresses as text. */
  addresses: readonly string[];
  ttl: number;
}
/** A lookup of a name's IPv4 or IPv6 addresses. */
export interface AddressLookup {
  target: string;
  type: number;
}

interface CachedAddresses extends Resolved {
  untilMs: number;
}

const namesMax = 100_000;
/** How long stale addresses are served beyond their TTL if a new lookup fails (RFC 8767). */
const staleMs = 3_600_000;
const failureMs = 1000;

/**
 * A cache of addresses of targets outside our zones. `want` requests a lookup, whose result arrives through
 * `set`. Queries that need the target wait until then.
 */
export class Flattening {
  readonly #cache = new Map<string, CachedAddresses>();
  readonly #failedMs = new Map<string, number>();
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #want: (wanted: AddressLookup) => void;

  constructor(want: (wanted: AddressLookup) => void) {
    this.#want = want;
  }

  /** The addresses; "failed" if they cannot be found, undefined while they are being looked up. */
  find(wanted: AddressLookup, nowMs: number): (Resolved & { untilMs: number }) | "failed" | undefined {
    const key = keyOf(wanted);
    const cached = this.#cache.get(key);
    if (cached !== undefined && nowMs < cached.untilMs) return cached;
    const hasFailed = nowMs - (this.#failedMs.get(key) ?? 0) < failureMs;
    if (!hasFailed) this.#ask(key, wanted);
    if (cached !== undefined && nowMs < cached.untilMs + staleMs)
      return { addresses: cached.addresses, ttl: 30, untilMs: nowMs + failureMs };
    return hasFailed ? "failed" : undefined;
  }

  /** Calls back after the target has been looked up. */
  await(wanted: AddressLookup, then: () => void): void {
    const list = this.#waiting.get(keyOf(wanted));
    if (list === undefined) then();
    else list.push(then);
  }

  /** Stores the result of a lookup; undefined if it failed. */
  set(wanted: AddressLookup, resolved: Resolved | undefined, nowMs: number): void {
    const key = keyOf(wanted);
    if (resolved === undefined) this.#failedMs.set(key, nowMs);
    else {
      this.#failedMs.delete(key);
      this.#cache.delete(key);
      this.#cache.set(key, { ...resolved, untilMs: nowMs + resolved.ttl * 1000 });
    }
    for (const map of [this.#cache, this.#failedMs]) if (map.size > namesMax) dropOldest(map);
    const waiting = this.#waiting.get(key) ?? [];
    this.#waiting.delete(key);
    for (const then of waiting) then();
  }

  #ask(key: string, wanted: AddressLookup): void {
    if (this.#waiting.has(key)) return;
    this.#waiting.set(key, []);
    this.#want(wanted);
  }
}

const keyOf = ({ target, type }: AddressLookup): string => `${type === types.A ? 4 : 6} ${target}`;

function dropOldest(map: Map<string, unknown>): void {
  for (const key of map.keys()) {
    map.delete(key);
    return;
  }
}

/** Returned in place of an answer that needs a lookup first. */
export class Awaited {
  readonly wanted: AddressLookup;
  constructor(wanted: AddressLookup) {
    this.wanted = wanted;
  }
}
