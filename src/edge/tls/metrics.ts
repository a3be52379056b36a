import type { Metric } from "prom-client";
import { counter, counters, gauges, samplesBy } from "../../platform/observability/instruments.ts";
import type { Edge } from "../request/listener.ts";
import type { TlsCounts } from "./tls-counts.ts";

/** Metrics of visitors' connections and their handshakes. */
export const tlsMetrics = (edge: Pick<Edge, "open">, tls: TlsCounts): Metric[] => [
  gauges("edge_connections", "Connections of visitors that are open", ["protocol"], () =>
    samplesBy("protocol", { "HTTP/1": edge.open.connections, "HTTP/2": tls.sessions() }),
  ),
  counters("tls_handshakes_total", "Handshakes with visitors", ["version", "resumed"], () =>
    [...tls.handshakes.values()].map(({ version, resumed, count }) => [{ version, resumed }, count]),
  ),
  counter("tls_handshake_failures_total", "Handshakes with visitors that failed", () => tls.failures),
];
