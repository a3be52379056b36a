import { Gauge, type Metric } from "prom-client";
import { metricPrefix } from "./metrics.ts";

/** Metrics of periodic backups. */
export const backupMetrics = (lastSuccessMs: () => number | undefined): Metric[] => [
  new Gauge({
    name: `${metricPrefix}backup_last_success_timestamp_seconds`,
    help: "When the newest complete periodic backup began; 0 if there is none",
    registers: [],
    collect() {
      this.set((lastSuccessMs() ?? 0) / 1000);
    },
  }),
];
