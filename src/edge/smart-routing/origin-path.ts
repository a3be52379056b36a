import { Latency } from "./latency.ts";
import type { Relay } from "./relays.ts";

const failuresMax = 5;
const ejectionBaseMs = 30_000;
const ejectionMaxMs = 300_000;
const failurePenaltyMs = 1000;
/** Weight of each request in the success rate. */
const successWeight = 0.02;
const judgedRequestsMin = 50;

/** One path to an origin: an address and optionally a relay node, with its measurements. */
export class OriginPath {
  readonly name: string;
  readonly address: string;
  readonly relay: Relay | undefined;
  readonly latency = new Latency();
  requests = 0;
  failures = 0;
  /** Start times of requests that wait for their first byte, oldest first. */
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

  /** Time until the path may return; 0 for one that is not excluded. */
  ejectedForMs(nowMs: number): number {
    return Math.max(0, this.#ejectedUntilMs - nowMs);
  }

  start(nowMs: number): { startMs: number } {
    const request = { startMs: nowMs };
    this.#waiting.add(request);
    this.requests += 1;
    return request;
  }

  /** Records the time to first byte, or, for an abandoned request, the time waited so far. */
  sample(request: { startMs: number }, nowMs: number): void {
    this.latency.add(nowMs - request.startMs, nowMs);
  }

  /** Ends the wait of a request, successful or not. */
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

  /** Records a failure, or a response that reports one behind the path. */
  faulty(): void {
    this.failures += 1;
    this.#consecutiveFailures += 1;
    this.#outcome(0);
  }

  get hasFailedInARow(): boolean {
    return this.#consecutiveFailures >= failuresMax;
  }

  /** Success rate of recent requests; undefined while there are too few. */
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

  /** Extends the exclusion of a path that does not respond. */
  stayAway(untilMs: number): void {
    this.#ejectedUntilMs = Math.max(this.#ejectedUntilMs, untilMs);
  }

  /**
   * Expected time to first byte in milliseconds; undefined without data. Requests that have waited longer
   * than the mean already count: the second oldest of them does, so that a single slow page does not.
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
