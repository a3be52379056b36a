import { Gauge, type Metric } from "prom-client";
import { metricPrefix } from "../platform/observability/metrics.ts";

/** Numbers of cells: for scripts of accounts, and for customers' scripts. */
export type CellCounts = Record<"accounts" | "customers", { shared: number; all: number }>;

/** Metrics of cells. */
export function cellMetrics(cells: () => CellCounts): Metric[] {
  return [
    new Gauge({
      name: `${metricPrefix}cells`,
      help: "Processes that run scripts",
      labelNames: ["of", "kind"],
      registers: [],
      collect() {
        for (const [of, { shared, all }] of Object.entries(cells())) {
          this.set({ of, kind: "shared" }, shared);
          this.set({ of, kind: "dedicated_or_spare" }, all - shared);
        }
      },
    }),
  ];
}
