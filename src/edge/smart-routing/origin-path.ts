import { Latency } from "./latency.ts";
import type { Relay } from "./relays.ts";

const failuresMax = 5;
const ejectionBaseMs = 30_000;
const ejectionMaxMs = 300_000;
const failurePenaltyMs = 1000;
/** Weight of each request in the success rate. */
const successWeight = 0.02;
const judgedRequestsMin = 50;

/** An observation of a path: a time to first byte in milliseconds, an outcome, or how much longer it stays excluded. */
export type PathObservation =
  | number
  | { punishMs: number }
  | { excludedForMs: number }
  | "success"
  | "failure"
  | "ejection";

/** The recent observations of a path, in their order, for other processes. */
export interface PathObservations {
  requests: number;
  observations: PathObservation[];
}

/** More observations of one interval would change little. Ejections are always sent. */
const observationsMax = 200;

/** One path to an origin: an address and optionally a relay node, with its measurements. */
export class OriginPath {
  readonly name: string;
  readonly address: string;
  readonly relay: Relay | undefined;
  readonly latency = new Latency();
  /** Called with the first observation after `takeObservations`, and with an ejection; undefined in a node of one process. */
  onObservation: ((isUrgent: boolean) => void) | undefined;
  #unsent: PathObservations | undefined;
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
    if (this.onObservation !== undefined) this.#ownObservations().requests += 1;
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
  merge({ requests, observations }: PathObservations, nowMs: number): void {
    this.requests += requests;
    for (const each of observations)
      if (each !== "ejection" || !this.isEjected(nowMs)) this.#note(each, nowMs);
  }

  /**
   * The observations since the last call; undefined without any. The rest of an exclusion is measured now: measured
   * earlier, it would grow with each message between processes.
   */
  takeObservations(nowMs = performance.now()): PathObservations | undefined {
    const unsent = this.#unsent;
    this.#unsent = undefined;
    if (unsent === undefined) return undefined;
    const excludedForMs = this.ejectedForMs(nowMs);
    const observations = unsent.observations.map((each) =>
      typeof each === "object" && "excludedForMs" in each ? { excludedForMs } : each,
    );
    return { ...unsent, observations };
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

  /** Extends the exclusion of a path that does not respond, in all processes. */
  stayAway(excludedForMs: number, nowMs: number): void {
    this.#observe({ excludedForMs }, nowMs);
  }

  /** Tells the exclusion again, for processes that were started meanwhile. */
  reportExclusion(nowMs: number): void {
    this.stayAway(this.ejectedForMs(nowMs), nowMs);
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
    if (this.onObservation === undefined) return;
    const { observations } = this.#ownObservations();
    const isUrgent = observation === "ejection";
    if (isUrgent || observations.length < observationsMax) observations.push(observation);
    if (isUrgent) this.onObservation(true);
  }

  #ownObservations(): PathObservations {
    if (this.#unsent === undefined) {
      this.#unsent = { requests: 0, observations: [] };
      this.onObservation!(false);
    }
    return this.#unsent;
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
    } else if ("punishMs" in observation) this.latency.punish(observation.punishMs, nowMs);
    else this.#ejectedUntilMs = Math.max(this.#ejectedUntilMs, nowMs + observation.excludedForMs);
  }

  #outcome(success: 0 | 1): void {
    this.#outcomes += 1;
    this.#successShare += (success - this.#successShare) * successWeight;
  }
}
