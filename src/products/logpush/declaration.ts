import { declare, table } from "../../declaration.ts";
import type { LogpushJobsTable } from "./tables.ts";

/** Logpush. */
export const declaration = declare({
  settings: {
    logpushSpoolMegabytes: {
      kind: "count",
      min: 1,
      max: 1_000_000,
      flag: "logpush-spool-megabytes",
      env: "SELVEDGE_LOGPUSH_SPOOL_MEGABYTES",
      default: 1024,
      describe:
        "events of all Logpush jobs that wait in the data folder for their upload; one job has at most a quarter, and more are dropped and counted",
    },
    logpushIntervalSeconds: {
      kind: "count",
      min: 1,
      max: 300,
      flag: "logpush-interval-seconds",
      env: "SELVEDGE_LOGPUSH_INTERVAL_SECONDS",
      default: 30,
      describe:
        "how long a Logpush job collects events for an upload, if it has no max_upload_interval_seconds",
    },
    logpushTimeoutSeconds: {
      kind: "count",
      min: 1,
      max: 600,
      flag: "logpush-timeout-seconds",
      env: "SELVEDGE_LOGPUSH_TIMEOUT_SECONDS",
      default: 60,
      describe: "longest time of an upload to the destination of a Logpush job",
    },
    logpushDisableAfterHours: {
      kind: "count",
      min: 1,
      max: 720,
      flag: "logpush-disable-after-hours",
      env: "SELVEDGE_LOGPUSH_DISABLE_AFTER_HOURS",
      default: 24,
      describe: "a Logpush job whose uploads have only failed for so long is disabled",
    },
  },
  tables: {
    logpush_jobs: table<LogpushJobsTable>(),
  },
  migrations: {
    "0026-logpush": async () => (await import("./migrations/0026-logpush.ts")).logpush,
  },
  changes: ["logpush_job"],
});
