import type { Metric } from "prom-client";
import { BoundedLabel } from "../../platform/observability/bounded-label.ts";
import { counter, counters, gauge } from "../../platform/observability/instruments.ts";
import type { LogSpool } from "./spool/spool.ts";
import type { Uploader } from "./uploader.ts";

/** Metrics of the events in the spool. */
export function spoolMetrics(spool: Pick<LogSpool, "dropped">): Metric[] {
  const accounts = new BoundedLabel();
  return [
    counters(
      "logpush_dropped_events_total",
      "Events of Logpush jobs that were dropped, because the spool was full or could not be written",
      ["account", "data_set"],
      () =>
        [...spool.dropped.counts()].map(
          ({ accountId, dataSet, count }) =>
            [{ account: accounts.of(accountId), data_set: dataSet }, count] as const,
        ),
    ),
  ];
}

/** Metrics of uploads. */
export const uploadMetrics = (
  uploader: Pick<Uploader, "counts" | "failing">,
  spool: Pick<LogSpool, "measure" | "bytes">,
): Metric[] => [
  counters("logpush_uploads_total", "Uploads of Logpush, by their result", ["result"], () => [
    [{ result: "ok" }, uploader.counts.uploads],
    [{ result: "failed" }, uploader.counts.failures],
  ]),
  counter(
    "logpush_upload_bytes_total",
    "Compressed bytes that Logpush has uploaded",
    () => uploader.counts.bytes,
  ),
  gauge(
    "logpush_failing_jobs",
    "Logpush jobs whose last upload from this node failed",
    () => uploader.failing,
  ),
  gauge("logpush_spool_bytes", "Bytes in the data folder that wait for their upload", async () => {
    await spool.measure();
    return spool.bytes;
  }),
];
