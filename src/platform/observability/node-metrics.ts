import type { Metric } from "prom-client";
import { gauge } from "./instruments.ts";

/** Metrics of the installation's nodes. */
export const nodeMetrics = (registry: { live: number }): Metric[] => [
  gauge(
    "nodes",
    "Nodes of the installation that were seen in the last ten seconds, this one included",
    () => registry.live,
  ),
];
