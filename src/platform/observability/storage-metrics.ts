import { stat, statfs } from "node:fs/promises";
import { Counter, Histogram, type Metric } from "prom-client";
import { isDiskFull, isUnavailable } from "../storage/faults.ts";
import type { Storage } from "../storage/storage.ts";
import { gauge, gauges, metricPrefix, samplesBy } from "./instruments.ts";

/**
 * Metrics of the database and of the disk below the data folder. `file` is the database of SQLite, undefined if there is
 * none.
 */
export function storageMetrics(
  storage: Pick<Storage, "onWritten" | "connections">,
  { file, folder }: { file: string | undefined; folder: string },
): Metric[] {
  return [
    ...writeMetrics(storage),
    gauge("storage_wal_bytes", "Size of the write-ahead log of SQLite", async () => {
      if (file === undefined) return undefined;
      return (await stat(`${file}-wal`).catch(() => ({ size: 0 }))).size;
    }),
    gauges(
      "pg_pool_connections",
      "Connections to PostgreSQL, and transactions that wait for one",
      ["state"],
      () => samplesBy("state", storage.connections ?? {}),
    ),
    gauges("disk_bytes", "Size and free space of the disk below the data folder", ["of"], async () => {
      const { bsize, blocks, bavail } = await statfs(folder);
      return samplesBy("of", { size: blocks * bsize, free: bavail * bsize });
    }),
  ];
}

function writeMetrics(storage: Pick<Storage, "onWritten">): Metric[] {
  const seconds = new Histogram({
    name: `${metricPrefix}storage_write_duration_seconds`,
    help: "Time of a write, from its start until it is on disk and in effect at this node",
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers: [],
  });
  const errors = new Counter({
    name: `${metricPrefix}storage_errors_total`,
    help: "Writes that failed because the disk was full or the database unavailable",
    labelNames: ["cause"],
    registers: [],
  });
  for (const cause of ["disk_full", "unavailable"]) errors.inc({ cause }, 0);
  storage.onWritten = (time, error) => {
    seconds.observe(time);
    if (isDiskFull(error)) errors.inc({ cause: "disk_full" });
    else if (isUnavailable(error)) errors.inc({ cause: "unavailable" });
  };
  return [seconds, errors];
}
