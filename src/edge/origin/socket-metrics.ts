import type { Metric } from "prom-client";
import { counter, counters, gauge, samplesBy } from "../../platform/observability/instruments.ts";
import type { SocketCounts } from "./outbound-sockets.ts";

/** Metrics of the TCP connections that scripts open (`connect()`, `node:net`). */
export const socketMetrics = (sockets: () => SocketCounts): Metric[] => [
  gauge("script_sockets", "Connections of scripts (connect(), node:net) that are open", () => sockets().open),
  counter("script_sockets_opened_total", "Connections that scripts have opened", () => sockets().opened),
  counters(
    "script_socket_bytes_total",
    "Bytes on connections of scripts, counted when one ends",
    ["direction"],
    () => samplesBy("direction", { sent: sockets().sentBytes, received: sockets().receivedBytes }),
  ),
];
