import { Latency } from "./latency.ts";
import type { Relay } from "./relays.ts";

const failuresMax = 5;
const ejectionBaseMs = 30_000;
const ejectionMaxMs = 300_000;
const failurePenaltyMs = 1000;
/** Weight of each request in the success rate. */
const successWeight = 0.02;
const judgedRequestsMin = 50;

/** An observation of a path: a time to first byte in milliseconds, or an outcome. */
export type PathObservation = number | { punishMs: number } | "success" | "failure" | "ejection";

/** The recent observations of a path, in their order, for other processes. */
export interface PathNews {
  requests: number;
  observations: PathObservation[];
}

/** More observations of one interval would change little. Ejections are always told. */
const observationsMax = 200;

/** One path to an origin: an address and optionally a relay node, with its measurements. */
export class OriginPath {
  readonly name: string;
  readonly address: string;
  readonly relay: Relay | undefined;
  readonly latency = new Latency();
  /** Called with the first observation after `takeNews`, and with an ejection; undefined in a node of one process. */
  onNews: ((isUrgent: boolean) => void) | undefined;
  #news: PathNews | undefined;
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
    if (this.onNews !== undefined) this.#ownNews().requests += 1;
    return request;
  }

  /** Records the time to first byte, or, for an abandoned request, the time waited so far. */
  sample(request: { startMs: number }, nowMs: number): void {
    this.#observe(nowMs - request.startMs, nowMs);
  }

  /** Ends the wait of a request, successful or not. */
  end(request: { startMs: number }): void {
    this.#waiting.delete(request);
  }

  succeeded(): void {
    this.#observe("success", performance.now());
  }

  failed(request: { startMs: number }, nowMs: number): void {
    this.#observe({ punishMs: Math.max(nowMs - request.startMs, failurePenaltyMs) }, nowMs);
    this.faulty();
  }

  /** Records a failure, or a response that reports one behind the path. */
  faulty(): void {
    this.#observe("failure", performance.now());
  }

  /** Takes over the observations of another process. */
  hear({ requests, observations }: PathNews, nowMs: number): void {
    this.requests += requests;
    for (const each of observations)
      if (each !== "ejection" || !this.isEjected(nowMs)) this.#note(each, nowMs);
  }

  /** The observations since the last call; undefined without any. */
  takeNews(): PathNews | undefined {
    const news = this.#news;
    this.#news = undefined;
    return news;
  }

  get hasFailedInARow(): boolean {
    return this.#consecutiveFailures >= failuresMax;
  }

  /** Success rate of recent requests; undefined while there are too few. */
  get successShare(): number | undefined {
    return this.#outcomes < judgedRequestsMin ? undefined : this.#successShare;
  }

  eject(nowMs: number): void {
    this.#observe("ejection", nowMs);
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

  #observe(observation: PathObservation, nowMs: number): void {
    this.#note(observation, nowMs);
    if (this.onNews === undefined) return;
    const { observations } = this.#ownNews();
    const isUrgent = observation === "ejection";
    if (isUrgent || observations.length < observationsMax) observations.push(observation);
    if (isUrgent) this.onNews(true);
  }

  #ownNews(): PathNews {
    if (this.#news === undefined) {
      this.#news = { requests: 0, observations: [] };
      this.onNews!(false);
    }
    return this.#news;
  }

  #note(observation: PathObservation, nowMs: number): void {
    if (typeof observation === "number") this.latency.add(observation, nowMs);
    else if (observation === "success") {
      this.#consecutiveFailures = 0;
      this.#ejections = 0;
      this.#outcome(1);
    } else if (observation === "failure") {
      this.failures += 1;
      this.#consecutiveFailures += 1;
      this.#outcome(0);
    } else if (observation === "ejection") {
      this.#ejections += 1;
      this.#consecutiveFailures = 0;
      this.#successShare = 1;
      this.#outcomes = 0;
      this.#ejectedUntilMs = nowMs + Math.min(ejectionBaseMs * this.#ejections, ejectionMaxMs);
    } else this.latency.punish(observation.punishMs, nowMs);
  }

  #outcome(success: 0 | 1): void {
    this.#outcomes += 1;
    this.#successShare += (success - this.#successShare) * successWeight;
  }
}
