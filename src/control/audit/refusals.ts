import { clock } from "../../platform/timers/clock.ts";
const windowMs = 60_000;
const actorsMax = 10_000;
/** Maximum entries a minute for callers without valid credentials, over all addresses. */
const strangersMax = 60;

/**
 * Limits the entries of refused calls: one a minute for each actor and account. The rest are counted, and the
 * actor's next entry names the count.
 */
export class Refusals {
  /** The calls that left no entry, by actor. Cleared each minute. */
  #counts = new Map<string, number>();
  #earlier = new Map<string, number>();
  #startedOn = 0;
  #strangers = 0;
  readonly #now: () => number;

  constructor(now: () => number = clock.now) {
    this.#now = now;
  }

  /** The number of earlier calls without an entry if this one leaves an entry, else undefined. */
  take(actor: string, isStranger: boolean): number | undefined {
    this.#turn();
    const counted = this.#counts.get(actor);
    if (counted !== undefined) {
      this.#counts.set(actor, counted + 1);
      return undefined;
    }
    if (this.#counts.size >= actorsMax || (isStranger && this.#strangers >= strangersMax)) return undefined;
    if (isStranger) this.#strangers++;
    this.#counts.set(actor, 0);
    return this.#earlier.get(actor) ?? 0;
  }

  #turn(): void {
    const now = this.#now();
    if (now - this.#startedOn < windowMs) return;
    this.#earlier = this.#counts;
    this.#counts = new Map();
    this.#strangers = 0;
    this.#startedOn = now;
  }
}

/** The key of an address: an IPv6 address counts as its /64 network, because one client has all of its addresses. */
export function networkKey(address: string): string {
  if (address.includes(".") || !address.includes(":")) return address;
  const [head = "", tail] = address.split("::");
  const groups = (text: string): string[] => (text === "" ? [] : text.split(":"));
  const [first, last] = [groups(head), groups(tail ?? "")];
  const zeros = Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => "0");
  return [...first, ...zeros, ...last].slice(0, 4).join(":");
}
