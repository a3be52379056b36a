import type { Metric } from "prom-client";
import { counters } from "../observability/instruments.ts";
import type { LineWriter } from "./line-writer.ts";

/** Lines that are missing in the access logs. */
export const accessLogMetrics = (writers: readonly Pick<LineWriter, "dropped">[]): Metric[] => [
  counters(
    "log_dropped_total",
    "Lines of a log that were not written, because its file was too slow or failed",
    ["log"],
    () => [[{ log: "access" }, writers.reduce((sum, each) => sum + each.dropped, 0)]],
  ),
];
