import { Counter, Gauge, type Metric } from "prom-client";
import { metricPrefix } from "../../platform/observability/metrics.ts";
import type { SocketCounts } from "./outbound-sockets.ts";

/** Metrics of the TCP connections that scripts open (`connect()`, `node:net`). */
export function socketMetrics(sockets: () => SocketCounts): Metric[] {
  return [
    new Gauge({
      name: `${metricPrefix}script_sockets`,
      help: "Connections of scripts (connect(), node:net) that are open",
      registers: [],
      collect() {
        this.set(sockets().open);
      },
    }),
    new Counter({
      name: `${metricPrefix}script_sockets_opened_total`,
      help: "Connections that scripts have opened",
      registers: [],
      collect() {
        this.reset();
        this.inc(sockets().opened);
      },
    }),
    new Counter({
      name: `${metricPrefix}script_socket_bytes_total`,
      help: "Bytes on connections of scripts, counted when one ends",
      labelNames: ["direction"],
      registers: [],
      collect() {
        this.reset();
        this.inc({ direction: "sent" }, sockets().sentBytes);
        this.inc({ direction: "received" }, sockets().receivedBytes);
      },
    }),
  ];
}
