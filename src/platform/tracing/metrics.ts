import type { Metric } from "prom-client";
import { counter } from "../observability/instruments.ts";
import type { SpanExporter } from "./span-exporter.ts";

/** Spans that the collector has taken, and those that it has not. */
export const tracingMetrics = (exporter: Pick<SpanExporter, "dropped" | "exported">): Metric[] => [
  counter(
    "spans_dropped_total",
    "Spans of traces that were lost, because too many waited or the collector did not take them",
    () => exporter.dropped,
  ),
  counter("spans_exported_total", "Spans of traces that the collector has taken", () => exporter.exported),
];
