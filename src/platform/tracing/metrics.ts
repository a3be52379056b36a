import { Counter, type Metric } from "prom-client";
import { metricPrefix } from "../observability/metrics.ts";
import type { SpanExporter } from "./span-exporter.ts";

/** Spans that the collector has taken, and those that it has not. */
export const tracingMetrics = (exporter: Pick<SpanExporter, "dropped" | "exported">): Metric[] => [
  new Counter({
    name: `${metricPrefix}spans_dropped_total`,
    help: "Spans of traces that were lost, because too many waited or the collector did not take them",
    registers: [],
    collect() {
      this.reset();
      this.inc(exporter.dropped);
    },
  }),
  new Counter({
    name: `${metricPrefix}spans_exported_total`,
    help: "Spans of traces that the collector has taken",
    registers: [],
    collect() {
      this.reset();
      this.inc(exporter.exported);
    },
  }),
];
