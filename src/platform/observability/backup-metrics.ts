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

/** Metrics of the shipped log; none if it is not shipped. */
export const logMetrics = (shipping: { shippedMs: number | undefined } | undefined): Metric[] =>
  shipping === undefined
    ? []
    : [
        new Gauge({
          name: `${metricPrefix}backup_log_shipped_timestamp_seconds`,
          help: "Time until which all commits are at the target of the shipped log; 0 before the first copy",
          registers: [],
          collect() {
            this.set((shipping.shippedMs ?? 0) / 1000);
          },
        }),
      ];
