import type { CoarseClock, Timed } from "./coarse-clock.ts";
import { Connector, type Destination } from "./connect.ts";
import { OriginConnection, type ClientLimits, type ConnectionOwner } from "./connection.ts";
import { ResponseError, type ResponseReceiver, type ClientRequest, type OriginClient } from "./exchange.ts";
import { requestHead } from "./request-head.ts";
import { InFlightRequest } from "./in-flight-request.ts";

/**
 * Connections over HTTP/1.1 to one address. Each carries one request at a time and is kept open for the next one. Above
 * `connectionsMax`, requests wait. Visitors who have stopped to read their responses then give up their connections, so
 * that they cannot keep an origin from all others.
 */
export class OriginPool implements OriginClient, ConnectionOwner, Timed {
  readonly clock: CoarseClock;
  readonly limits: ClientLimits;
  readonly #connector: Connector;
  readonly #isTls: boolean;
  readonly #connectionsMax: number;
  readonly #open = new Set<OriginConnection>();
  /** Connections that are not established yet. */
  readonly #connecting = new Set<OriginConnection>();
  /** Connections without a request, the most recently used one last. */
  readonly #idle: OriginConnection[] = [];
  readonly #waiting = new Set<InFlightRequest>();
  #isClosing = false;
  /** When to look for visitors who do not read; Infinity while no request waits. */
  deadlineMs = Infinity;

  constructor(to: Destination, limits: ClientLimits, connectionsMax: number, clock: CoarseClock) {
    this.#connector = new Connector(to);
    this.#isTls = to.tls !== undefined;
    this.limits = limits;
    this.#connectionsMax = connectionsMax;
    this.clock = clock;
  }

  send(request: ClientRequest, receiver: ResponseReceiver): void {
    const inFlight = new InFlightRequest(request, receiver, this.#leave);
    try {
      receiver.began(inFlight);
      inFlight.head = requestHead(request);
    } catch (error) {
      inFlight.fail(error as Error);
    }
    if (inFlight.isEnded) return;
    const connection = request.isFresh === true ? this.#makeRoom() : this.#idle.pop();
    if (connection !== undefined) connection.take(inFlight);
    else this.#wait(inFlight);
  }

  isFree(connection: OriginConnection): void {
    this.#connecting.delete(connection);
    const [next] = this.#waiting;
    if (next !== undefined) {
      this.#leave(next);
      connection.take(next);
    } else if (this.#isClosing) connection.destroy();
    else {
      this.#idle.push(connection);
      connection.rest();
    }
  }

  isClosed(connection: OriginConnection, failure: Error | undefined): void {
    this.#open.delete(connection);
    this.#connecting.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
    // The pool opens one connection for each waiting request, so each failed connection fails one request.
    const [next] = failure === undefined ? [] : this.#waiting;
    next?.fail(failure!);
    this.#connect();
  }

  /** The number of connections, including those being established, and of requests that wait for one. */
  get load(): { open: number; waiting: number } {
    return { open: this.#open.size, waiting: this.#waiting.size };
  }

  /** Closes each connection as soon as it has no request. Call it when no more requests will be sent. */
  close(): void {
    this.#isClosing = true;
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }

  destroy(): void {
    this.#isClosing = true;
    const error = new ResponseError("the connections to origins are being closed");
    for (const waiting of this.#waiting) waiting.fail(error);
    for (const connection of this.#open) connection.destroy(error);
  }

  #wait(inFlight: InFlightRequest): void {
    this.#waiting.add(inFlight);
    this.clock.add(inFlight);
    // The time for connecting is added, because connecting has a timeout of its own.
    inFlight.deadlineMs = this.clock.in(this.limits.connectTimeoutMs + this.limits.firstByteTimeoutMs);
    this.#connect();
    if (this.deadlineMs !== Infinity || this.#open.size < this.#connectionsMax) return;
    this.deadlineMs = this.clock.in(this.limits.stallTimeoutMs);
    this.clock.add(this);
  }

  /** Ends a stalled connection for each request that waits, beginning with the one that has stalled for longest. */
  expire(): void {
    const before = this.clock.in(-this.limits.stallTimeoutMs);
    const stalled = [...this.#open]
      .filter(({ pausedAtMs }) => pausedAtMs <= before)
      .toSorted((a, b) => a.pausedAtMs - b.pausedAtMs);
    for (const connection of stalled.slice(0, this.#waiting.size)) connection.destroy(stoppedReading());
    this.deadlineMs = this.#waiting.size > 0 ? this.clock.in(this.limits.stallTimeoutMs) : Infinity;
    if (this.deadlineMs === Infinity) this.clock.delete(this);
  }

  readonly #leave = (waiting: InFlightRequest): void => {
    if (this.#waiting.delete(waiting)) this.clock.delete(waiting);
  };

  #connect(): void {
    while (this.#waiting.size > this.#connecting.size && this.#open.size < this.#connectionsMax) {
      const connection = new OriginConnection(this.#connector, this.#isTls, this);
      this.#open.add(connection);
      this.#connecting.add(connection);
    }
  }

  /** Closes an idle connection if a new one would be too many. */
  #makeRoom(): undefined {
    if (this.#open.size >= this.#connectionsMax) this.#idle.shift()?.destroy();
  }
}

const stoppedReading = (): Error =>
  new ResponseError("the visitor has stopped reading, and other requests wait for the connection");
