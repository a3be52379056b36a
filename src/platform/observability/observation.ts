import type { IncomingMessage, ServerResponse } from "node:http";

/** A finished request: answered, or abandoned by its client. */
export interface Observation {
  method: string;
  status: number;
  protocol: string;
  /** The zone's name; undefined if the request had no zone. */
  zone?: string | undefined;
  seconds: number;
}
/** Receives each finished request, for metrics. Must not throw. */
export type Observe = (observation: Observation) => void;

/** Responses that another process of the node observes and logs. */
export const leftOut = new WeakSet<object>();

/** Calls `observe` when the response has closed. */
export function observeResponse(response: ServerResponse, request: ObservedRequest, observe: Observe): void {
  const startMs = performance.now();
  response.on("close", () => observeClosed(response, request, observe, startMs, performance.now()));
}

type ObservedRequest = Pick<IncomingMessage, "method" | "httpVersion">;

/** Calls `observe` for a response that has closed, unless another process does. Times are those of `performance.now()`. */
export function observeClosed(
  response: ServerResponse,
  { method = "GET", httpVersion }: ObservedRequest,
  observe: Observe,
  startMs: number,
  endMs: number,
  zone?: string,
): void {
  if (leftOut.has(response)) return;
  observe({
    method,
    status: response.statusCode,
    protocol: protocolOf(httpVersion),
    zone,
    seconds: (endMs - startMs) / 1000,
  });
}

/** The name of an HTTP version, such as HTTP/1.1. */
export const protocolOf = (version: string): string =>
  version === "1.1" ? "HTTP/1.1" : version === "2.0" ? "HTTP/2" : `HTTP/${version}`;
