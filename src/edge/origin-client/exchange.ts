import type { Readable } from "node:stream";

/** A request to an origin. */
export interface ClientRequest {
  method: string;
  /** Path and query. */
  path: string;
  /** Names and values in turn, without the headers of the connection. */
  headers: readonly string[];
  body: Readable | null;
  /** Whether to send it on a new connection, because an idle one has just failed. */
  isFresh?: boolean;
}

/** Controls a request in progress. */
export interface Exchange {
  /** Aborts the request and passes the error to `failed`. Has no effect once the request has ended. */
  abort(error: Error): void;
  pause(): void;
  resume(): void;
}

/**
 * Receives the response to a request, in the order of the methods: `data` any number of times, and one of `end` and
 * `failed`. An exception in a method ends the exchange with `failed`.
 */
export interface ResponseReceiver {
  /** Called before anything is sent. */
  began(exchange: Exchange): void;
  /** `headers` are names and values in turn, as the origin wrote them. Interim responses are not reported. */
  head(status: number, text: string, headers: string[]): void;
  data(chunk: Buffer): void;
  /** Whether `data` uses or copies its bytes at once, so that they may be overwritten later. */
  readonly copiesData?: boolean;
  /** `last` is the whole body in Latin-1 if it came together with the head, else "". `trailers` are like headers. */
  end(last: string, trailers: readonly string[]): void;
  failed(error: Error): void;
}

/** Sends requests to one server. */
export interface OriginClient {
  send(request: ClientRequest, receiver: ResponseReceiver): void;
}

/** The origin closed an idle connection just when a request was sent on it, so it has not answered. */
export class StaleConnection extends Error {
  readonly code = "ECONNRESET";

  constructor(cause?: unknown) {
    super("the origin closed an idle connection", { cause });
  }
}

/** The origin's response breaks HTTP, or its connection ended within the response. */
export class ResponseError extends Error {}
