import type { Metric } from "prom-client";
import { counter } from "../observability/instruments.ts";
import type { SpanExporter } from "./span-exporter.ts";

/** Metrics of spans that the collector has accepted and of lost ones. */
export const tracingMetrics = (exporter: Pick<SpanExporter, "dropped" | "exported">): Metric[] => [
  counter(
    "spans_dropped_total",
    "Spans of traces that were lost, because too many waited or the collector did not accept them",
    () => exporter.dropped,
  ),
  counter("spans_exported_total", "Spans of traces that the collector has accepted", () => exporter.exported),
];
