import type { Metric } from "prom-client";
import type { PeriodicBackups } from "../periodic-backups.ts";
import { counter, gauge } from "./instruments.ts";

/** Metrics of periodic backups. */
export const backupMetrics = (
  backups: Pick<PeriodicBackups, "lastSuccessMs" | "lastSeconds" | "failures" | "everyMs">,
): Metric[] => [
  gauge(
    "backup_last_success_timestamp_seconds",
    "When the newest complete periodic backup began; 0 if there is none",
    () => (backups.lastSuccessMs ?? 0) / 1000,
  ),
  gauge("backup_interval_seconds", "Configured time between periodic backups", () => backups.everyMs / 1000),
  gauge(
    "backup_last_duration_seconds",
    "Time that the last periodic backup of this process took",
    () => backups.lastSeconds,
  ),
  counter("backup_failures_total", "Periodic backups that failed", () => backups.failures),
];

/** Metrics of the shipped log; none if no log is shipped. */
export const logMetrics = (shipping: { shippedMs: number | undefined } | undefined): Metric[] =>
  shipping === undefined
    ? []
    : [
        gauge(
          "backup_log_shipped_timestamp_seconds",
          "Time until which all commits are at the target of the shipped log; 0 before the first copy",
          () => (shipping.shippedMs ?? 0) / 1000,
        ),
      ];
