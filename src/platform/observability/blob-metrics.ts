import { Histogram, type Metric } from "prom-client";
import type { BlobCounts } from "../storage/blobs/blob-counts.ts";
import { counter, counters, gauge, metricPrefix, samplesBy } from "./instruments.ts";

/** Metrics of blobs. Those of operations and of the cache stay empty while blobs are files. */
export function blobMetrics(counts: BlobCounts): Metric[] {
  const { store } = counts;
  const seconds = new Histogram({
    name: `${metricPrefix}blob_operation_duration_seconds`,
    help: "Time of an operation of the store of blobs",
    labelNames: ["store", "operation"],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers: [],
  });
  counts.onOperation = (operation, time) => seconds.observe({ store, operation }, time);
  return [
    counters(
      "blob_operations_total",
      "Operations of the store of blobs",
      ["store", "operation", "result"],
      () =>
        [...counts.operations].map(([name, count]) => {
          const [operation = "", result = ""] = name.split(" ");
          return [{ store, operation, result }, count];
        }),
    ),
    seconds,
    gauge("blob_cache_bytes", "Bytes of blobs in the local cache", () => counts.cacheBytes()),
    counters(
      "blob_cache_requests_total",
      "Reads of blobs that the local cache answered, or did not",
      ["result"],
      () => samplesBy("result", counts.cache),
    ),
    counter(
      "blob_missing_total",
      "Reads of blobs that a row names and the store does not have",
      () => counts.missing,
    ),
  ];
}
