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
        "space in the data folder for events of all Logpush jobs that wait for their upload; each account has a part of its own, and further events are dropped and counted",
    },
    logpushIntervalSeconds: {
      kind: "count",
      min: 1,
      max: 300,
      flag: "logpush-interval-seconds",
      env: "SELVEDGE_LOGPUSH_INTERVAL_SECONDS",
      default: 30,
      describe: "how long a Logpush job without max_upload_interval_seconds collects events for an upload",
    },
    logpushTimeoutSeconds: {
      kind: "count",
      min: 1,
      max: 600,
      flag: "logpush-timeout-seconds",
      env: "SELVEDGE_LOGPUSH_TIMEOUT_SECONDS",
      default: 60,
      describe: "time limit of an upload to the destination of a Logpush job",
    },
    logpushDisableAfterHours: {
      kind: "count",
      min: 1,
      max: 720,
      flag: "logpush-disable-after-hours",
      env: "SELVEDGE_LOGPUSH_DISABLE_AFTER_HOURS",
      default: 24,
      describe: "a Logpush job is disabled after its uploads have only failed for this time",
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
