import type { Metric } from "prom-client";
import { counters, gauge, samplesBy } from "../platform/observability/instruments.ts";
import type { OriginErrors } from "./origin/origin-errors.ts";
import type { Origins } from "./origin/origins.ts";
import type { Edge } from "./request/listener.ts";

/** Metrics of the edge's connections, to visitors and to origins. */
export const edgeMetrics = (
  edge: Pick<Edge, "open">,
  origins: Pick<Origins, "connections">,
  errors: OriginErrors,
): Metric[] => [
  gauge("edge_websockets", "WebSockets of visitors that are open", () => edge.open.webSockets),
  gauge("edge_origin_connections", "Connections to origins that are open", () => origins.connections.open),
  gauge(
    "edge_origin_waiting",
    "Requests that wait for a connection to their origin",
    () => origins.connections.waiting,
  ),
  counters(
    "edge_origin_errors_total",
    "Error pages because an origin could not be reached or answered wrongly",
    ["code"],
    () => samplesBy("code", errors.counts),
  ),
];
