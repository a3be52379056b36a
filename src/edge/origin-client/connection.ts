import type { Socket } from "node:net";
import { tlsError, visitorErrors } from "../http/errors.ts";
import { ResponseParser, type ResponseEvents } from "./response-parser.ts";
import type { CoarseClock, Timed } from "./coarse-clock.ts";
import type { Connector } from "./connect.ts";
import { ResponseError, StaleConnection } from "./exchange.ts";
import { RequestBody, type BodyEvents } from "./request-body.ts";
import type { InFlightRequest } from "./in-flight-request.ts";

/** Times in ms. */
export interface ClientLimits {
  connectTimeoutMs: number;
  /** From the end of the request to the end of the response's head. */
  firstByteTimeoutMs: number;
  /** Between parts of the response. */
  idleTimeoutMs: number;
  /** How long a visitor may stop to read while other requests wait for the connection. */
  stallTimeoutMs: number;
  /** Maximum size of a response's head, and of its trailers. */
  headBytesMax: number;
}

/** The pool of a connection. */
export interface ConnectionOwner {
  readonly clock: CoarseClock;
  readonly limits: ClientLimits;
  /** Called when the connection can take a request, because it is new or has finished one. */
  isFree(connection: OriginConnection): void;
  /** Called when the connection is closed. `failure` is set if it was never established. */
  isClosed(connection: OriginConnection, failure: Error | undefined): void;
}

/** How long connections are kept open without a request, if the origin does not say. */
const keepAliveMs = 30_000;
const keepAliveMsMax = 600_000;
/** A connection closes this much earlier than the idle timeout that the origin announces, to avoid a race with it. */
const keepAliveMarginMs = 2000;

/** A connection to an origin, which carries one request at a time. */
export class OriginConnection implements ResponseEvents, BodyEvents, Timed {
  deadlineMs = Infinity;
  readonly #owner: ConnectionOwner;
  readonly #socket: Socket;
  readonly #parser: ResponseParser;
  #inFlight: InFlightRequest | undefined;
  #body: RequestBody | undefined;
  #isReady = false;
  #isUsed = false;
  #isPaused = false;
  /** Since when the visitor has not read, in the time of the clock; Infinity while it reads. */
  pausedAtMs = Infinity;
  /** Whether the socket's buffer is full, because the origin reads the body more slowly than it arrives. */
  #isBlocked = false;
  #isClosed = false;
  #hasEnded = false;

  /** Begins to connect. */
  constructor(connector: Connector, isTls: boolean, owner: ConnectionOwner) {
    this.#owner = owner;
    this.#parser = new ResponseParser(owner.limits.headBytesMax);
    this.#socket = connector.connect(
      (bytes, length, isOwned) => this.#receive(bytes, length, isOwned),
      () => {
        this.#isReady = true;
        owner.isFree(this);
      },
    );
    this.#socket
      .on("error", (error) => this.destroy(isTls && !this.#isReady ? tlsError(error) : error))
      .on("end", () => this.#otherSideEnds())
      .on("close", () => this.#otherSideEnds())
      .on("drain", () => this.#body?.drained());
    owner.clock.add(this);
    this.deadlineMs = owner.clock.in(owner.limits.connectTimeoutMs);
  }

  /** Sends a request. */
  take(inFlight: InFlightRequest): void {
    const { clock, limits } = this.#owner;
    const { request, head } = inFlight;
    inFlight.connection = this;
    this.#inFlight = inFlight;
    this.#isBlocked = false;
    this.#parser.begin(request.method, this);
    this.#socket.write(head!.text, "latin1");
    this.deadlineMs = clock.in(limits.firstByteTimeoutMs);
    if (request.body === null) return;
    this.deadlineMs = Infinity; // the visitor's own timeout applies
    this.#body = new RequestBody(request.body, head!.length, this.#socket, this);
  }

  /** Keeps the idle connection open for a while, which ends before the origin's announced idle timeout. */
  rest(): void {
    const announced = this.#parser.keepAliveMs;
    const ms =
      announced === undefined ? keepAliveMs : Math.min(announced - keepAliveMarginMs, keepAliveMsMax);
    this.deadlineMs = ms > 0 ? this.#owner.clock.in(ms) : 0;
    if (ms <= 0) this.destroy();
  }

  pause(): void {
    if (!this.#isPaused) this.pausedAtMs = this.#owner.clock.in(0);
    this.#isPaused = true;
    this.#awaitOrigin();
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.pausedAtMs = Infinity;
    this.#awaitOrigin();
    this.#socket.resume();
  }

  /** Closes the connection. A request that it has fails. */
  destroy(error?: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const isStale = this.#isUsed && !this.#parser.hasBegun && isClosing(error);
    this.#parser.stop();
    this.#owner.clock.delete(this);
    this.#socket.destroy();
    this.#body?.stop();
    const inFlight = this.#inFlight;
    this.#inFlight = undefined;
    const failure = error ?? new ResponseError("the connection to the origin was closed");
    this.#owner.isClosed(this, this.#isReady ? undefined : failure);
    inFlight?.fail(isStale ? new StaleConnection(failure) : failure);
  }

  expire(): void {
    if (!this.#isReady) this.destroy(connectTimeout());
    else if (this.#inFlight === undefined) this.destroy();
    else if (this.#parser.hasHead)
      this.destroy(new ResponseError("the origin has stopped in the middle of its answer"));
    else this.destroy(visitorErrors.originFirstByteTimeout());
  }

  head(status: number, text: string, headers: string[]): void {
    this.#inFlight!.receiver.head(status, text, headers);
  }

  data(chunk: Buffer, isOwned: boolean): void {
    const { receiver } = this.#inFlight!;
    receiver.data(isOwned || receiver.copiesData === true ? chunk : Buffer.from(chunk));
  }

  end(last: string, trailers: readonly string[]): void {
    this.#hasEnded = true;
    this.#inFlight!.end(last, trailers);
  }

  blocked(isBlocked: boolean): void {
    this.#isBlocked = isBlocked;
    this.#awaitOrigin();
  }

  sent(): void {
    this.#isBlocked = false;
    this.#awaitOrigin();
  }

  failed(error: Error): void {
    this.destroy(error);
  }

  /** Restarts the origin's timeout, unless the visitor must act next: then only the visitor's own timeout applies. */
  #awaitOrigin(): void {
    const { clock, limits } = this.#owner;
    const isSending = this.#body?.isSent === false && !this.#isBlocked;
    const ms = this.#parser.hasHead ? limits.idleTimeoutMs : limits.firstByteTimeoutMs;
    this.deadlineMs = this.#isPaused || isSending ? Infinity : clock.in(ms);
  }

  /** Returns false to stop reading from the socket. */
  #receive(bytes: Buffer, length: number, isOwned: boolean): boolean {
    try {
      this.#parser.read(bytes, length, isOwned);
    } catch (error) {
      this.destroy(error as Error);
      return false;
    }
    if (this.#isClosed) return false;
    if (this.#hasEnded) this.#finish();
    else if (this.#inFlight === undefined) this.destroy(); // bytes without a request
    else if (this.#parser.hasHead) this.#awaitOrigin(); // interim responses and parts of a head move no deadline
    return !this.#isPaused;
  }

  /** After a response, frees the connection for the next request, or closes it if the exchange is unfinished. */
  #finish(): void {
    this.#hasEnded = false;
    this.#inFlight = undefined;
    if (!this.#parser.isReusable || this.#body?.isSent === false) {
      this.destroy();
      return;
    }
    this.#body?.stop();
    this.#body = undefined;
    this.#isUsed = true;
    if (this.#isPaused) {
      this.#isPaused = false;
      this.pausedAtMs = Infinity;
      this.#socket.resume();
    }
    this.#owner.isFree(this);
  }

  #otherSideEnds(): void {
    if (this.#isClosed) return;
    let failure: Error | undefined;
    try {
      this.#parser.close();
    } catch (error) {
      failure = Object.assign(error as Error, { code: "ECONNRESET" });
    }
    this.#inFlight = failure === undefined ? undefined : this.#inFlight;
    this.destroy(failure);
  }
}

/** Whether the error means that the origin closed the connection. */
const isClosing = (error: Error | undefined): boolean =>
  ["ECONNRESET", "EPIPE"].includes((error as { code?: string } | undefined)?.code ?? "");

const connectTimeout = (): Error =>
  Object.assign(new Error("connect timed out"), { code: "ETIMEDOUT", syscall: "connect" });
