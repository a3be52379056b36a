import type { ServerResponse } from "node:http";

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

/** Calls `observe` when the response has closed. `zone` is called then, too. */
export function observeResponse(
  response: ServerResponse,
  request: { method?: string | undefined; httpVersion: string },
  observe: Observe,
  zone?: () => string | undefined,
): void {
  const startMs = performance.now();
  response.on("close", () => {
    if (leftOut.has(response)) return;
    observe({
      method: request.method ?? "GET",
      status: response.statusCode,
      protocol: request.httpVersion === "2.0" ? "HTTP/2" : `HTTP/${request.httpVersion}`,
      zone: zone?.(),
      seconds: (performance.now() - startMs) / 1000,
    });
  });
}
