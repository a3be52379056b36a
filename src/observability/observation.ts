import type { ServerResponse } from "node:http";

/** A request that has been answered, or whose visitor has left. */
export interface Observation {
  method: string;
  status: number;
  protocol: string;
  /** Of the zone that it was for; undefined when there was none. */
  zone?: string | undefined;
  seconds: number;
}
export type Observe = (observation: Observation) => void;

/** Tells of a request when its connection is done with it; `zone` is asked then. */
export function observeAnswer(
  response: ServerResponse,
  request: { method?: string | undefined; httpVersion: string },
  observe: Observe,
  zone?: () => string | undefined,
): void {
  const startMs = performance.now();
  response.on("close", () => {
    observe({
      method: request.method ?? "GET",
      status: response.statusCode,
      protocol: request.httpVersion === "2.0" ? "HTTP/2" : `HTTP/${request.httpVersion}`,
      zone: zone?.(),
      seconds: (performance.now() - startMs) / 1000,
    });
  });
}
