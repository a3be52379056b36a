import { Latency } from "./latency.ts";
import type { Relay } from "./relays.ts";

const failuresMax = 5;
const ejectionBaseMs = 30_000;
const ejectionMaxMs = 300_000;
const failurePenaltyMs = 1000;
/** Share of what is known of successes that each request replaces. */
const successWeight = 0.02;
const judgedRequestsMin = 50;

/** One way to an origin: an address, and the node that a request goes through, if any. What is known of how it does. */
export class OriginPath {
  readonly name: string;
  readonly address: string;
  readonly relay: Relay | undefined;
  readonly latency = new Latency();
  requests = 0;
  failures = 0;
  /** Start times of requests that wait for their first byte, the oldest first. */
  readonly #waiting = new Set<{ startMs: number }>();
  #consecutiveFailures = 0;
  #successShare = 1;
  #outcomes = 0;
  #ejections = 0;
  #ejectedUntilMs = 0;

  constructor(address: string, relay: Relay | undefined) {
    this.name = relay === undefined ? address : `${relay.name}>${address}`;
    this.address = address;
    this.relay = relay;
  }

  get inFlight(): number {
    return this.#waiting.size;
  }

  isEjected(nowMs: number): boolean {
    return this.#ejectedUntilMs > nowMs;
  }

  start(nowMs: number): { startMs: number } {
    const request = { startMs: nowMs };
    this.#waiting.add(request);
    this.requests += 1;
    return request;
  }

  /** The request's first byte came, or it was given up for another path: then this is how long it takes at least. */
  sample(request: { startMs: number }, nowMs: number): void {
    this.latency.add(nowMs - request.startMs, nowMs);
  }

  /** The request waits no longer, whatever came of it. */
  end(request: { startMs: number }): void {
    this.#waiting.delete(request);
  }

  succeeded(): void {
    this.#consecutiveFailures = 0;
    this.#ejections = 0;
    this.#outcome(1);
  }

  failed(request: { startMs: number }, nowMs: number): void {
    this.latency.punish(Math.max(nowMs - request.startMs, failurePenaltyMs), nowMs);
    this.faulty();
  }

  /** A failure, or an answer which says that the server behind the path fails. */
  faulty(): void {
    this.failures += 1;
    this.#consecutiveFailures += 1;
    this.#outcome(0);
  }

  get hasFailedInARow(): boolean {
    return this.#consecutiveFailures >= failuresMax;
  }

  /** Share of the late requests that were answered well; undefined before enough of them to judge. */
  get successShare(): number | undefined {
    return this.#outcomes < judgedRequestsMin ? undefined : this.#successShare;
  }

  eject(nowMs: number): void {
    this.#ejections += 1;
    this.#consecutiveFailures = 0;
    this.#successShare = 1;
    this.#outcomes = 0;
    this.#ejectedUntilMs = nowMs + Math.min(ejectionBaseMs * this.#ejections, ejectionMaxMs);
  }

  /** Set aside as it is, it stays so until then at least: nobody answers at its end. */
  stayAway(untilMs: number): void {
    this.#ejectedUntilMs = Math.max(this.#ejectedUntilMs, untilMs);
  }

  /**
   * What to expect of the path, in milliseconds; undefined when nothing is known. Requests that have waited longer than
   * the mean are samples already: the second oldest of them counts, so that one slow page does not.
   */
  score(nowMs: number): number | undefined {
    const { ms } = this.latency;
    if (this.#waiting.size < 2) return ms;
    const [, second] = this.#waiting;
    return Math.max(ms ?? 0, nowMs - second!.startMs);
  }

  #outcome(success: 0 | 1): void {
    this.#outcomes += 1;
    this.#successShare += (success - this.#successShare) * successWeight;
  }
}
