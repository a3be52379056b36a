import { Gauge, type Metric } from "prom-client";
import { metricPrefix } from "./metrics.ts";

/** Metrics of the installation's nodes. */
export const nodeMetrics = (registry: { live: number }): Metric[] => [
  new Gauge({
    name: `${metricPrefix}nodes`,
    help: "Nodes of the installation that were seen in the last ten seconds, this one included",
    registers: [],
    collect() {
      this.set(registry.live);
    },
  }),
];
