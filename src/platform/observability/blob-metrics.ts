import { Counter, Gauge, type Metric } from "prom-client";
import type { BlobCounts } from "../storage/blobs/blob-counts.ts";
import { metricPrefix } from "./metrics.ts";

/** Metrics of blobs. Those of operations and of the cache stay empty while blobs are files. */
export function blobMetrics(counts: BlobCounts): Metric[] {
  const { store } = counts;
  return [
    new Counter({
      name: `${metricPrefix}blob_operations_total`,
      help: "Operations of the store of blobs",
      labelNames: ["store", "operation", "result"],
      registers: [],
      collect() {
        this.reset();
        for (const [name, count] of counts.operations) {
          const [operation = "", result = ""] = name.split(" ");
          this.inc({ store, operation, result }, count);
        }
      },
    }),
    new Gauge({
      name: `${metricPrefix}blob_cache_bytes`,
      help: "Bytes of blobs in the local cache",
      registers: [],
      collect() {
        this.set(counts.cacheBytes());
      },
    }),
    new Counter({
      name: `${metricPrefix}blob_cache_requests_total`,
      help: "Reads of blobs that the local cache answered, or did not",
      labelNames: ["result"],
      registers: [],
      collect() {
        this.reset();
        for (const [result, count] of Object.entries(counts.cache)) this.inc({ result }, count);
      },
    }),
    new Counter({
      name: `${metricPrefix}blob_missing_total`,
      help: "Reads of blobs that a row names and the store does not have",
      registers: [],
      collect() {
        this.reset();
        this.inc(counts.missing);
      },
    }),
  ];
}
