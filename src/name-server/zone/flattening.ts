import { types } from "../wire/constants.ts";

/** What a name outside of our zones is found to have. */
export interface Resolved {
  /** Text of the addresses. */
  addresses: readonly string[];
  ttl: number;
}
/** A question for one kind of address of a name. */
export interface Wanted {
  target: string;
  type: number;
}

interface Kept extends Resolved {
  untilMs: number;
}

const namesMax = 100_000;
/** How long addresses that could not be found again still stand in (RFC 8767), beyond their TTL. */
const staleMs = 3_600_000;
const failureMs = 1000;

/**
 * Addresses of targets outside of our zones. They are looked up elsewhere, when `want` asks for them, and told with
 * `set`; a question that needs one waits until then.
 */
export class Flattening {
  readonly #kept = new Map<string, Kept>();
  readonly #failedMs = new Map<string, number>();
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #want: (wanted: Wanted) => void;

  constructor(want: (wanted: Wanted) => void) {
    this.#want = want;
  }

  /** The addresses; "failed" when they cannot be found, undefined when they are being looked up. */
  find(wanted: Wanted, nowMs: number): (Resolved & { untilMs: number }) | "failed" | undefined {
    const key = keyOf(wanted);
    const kept = this.#kept.get(key);
    if (kept !== undefined && nowMs < kept.untilMs) return kept;
    const hasFailed = nowMs - (this.#failedMs.get(key) ?? 0) < failureMs;
    if (!hasFailed) this.#ask(key, wanted);
    if (kept !== undefined && nowMs < kept.untilMs + staleMs)
      return { addresses: kept.addresses, ttl: 30, untilMs: nowMs + failureMs };
    return hasFailed ? "failed" : undefined;
  }

  /** Calls back when the target has been looked up. */
  await(wanted: Wanted, then: () => void): void {
    const list = this.#waiting.get(keyOf(wanted));
    if (list === undefined) then();
    else list.push(then);
  }

  /** Takes what was found, or that nothing could be. */
  set(wanted: Wanted, resolved: Resolved | undefined, nowMs: number): void {
    const key = keyOf(wanted);
    if (resolved === undefined) this.#failedMs.set(key, nowMs);
    else {
      this.#failedMs.delete(key);
      this.#kept.delete(key);
      this.#kept.set(key, { ...resolved, untilMs: nowMs + resolved.ttl * 1000 });
    }
    for (const map of [this.#kept, this.#failedMs]) if (map.size > namesMax) dropOldest(map);
    const waiting = this.#waiting.get(key) ?? [];
    this.#waiting.delete(key);
    for (const then of waiting) then();
  }

  #ask(key: string, wanted: Wanted): void {
    if (this.#waiting.has(key)) return;
    this.#waiting.set(key, []);
    this.#want(wanted);
  }
}

const keyOf = ({ target, type }: Wanted): string => `${type === types.A ? 4 : 6} ${target}`;

function dropOldest(map: Map<string, unknown>): void {
  for (const key of map.keys()) {
    map.delete(key);
    return;
  }
}

/** A name that an answer cannot do without, while it is looked up. */
export class Awaited {
  readonly wanted: Wanted;
  constructor(wanted: Wanted) {
    this.wanted = wanted;
  }
}
