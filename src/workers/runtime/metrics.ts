import type { Metric } from "prom-client";
import { counters, samplesBy } from "../../platform/observability/instruments.ts";
import type { RunCounts } from "../../sandbox/run-counts.ts";

/** Metrics of the runs of scripts. */
export const runtimeMetrics = ({ results }: RunCounts): Metric[] => [
  counters(
    "script_invocations_total",
    "Runs of scripts for visitors, events and calls by the gateway",
    ["result"],
    () => samplesBy("result", results),
  ),
];
