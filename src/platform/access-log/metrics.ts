import { Counter, type Metric } from "prom-client";
import { metricPrefix } from "../observability/metrics.ts";
import type { LineWriter } from "./line-writer.ts";

/** Lines that are missing in the access logs. */
export const accessLogMetrics = (writers: readonly Pick<LineWriter, "dropped">[]): Metric[] => [
  new Counter({
    name: `${metricPrefix}log_dropped_total`,
    help: "Lines of a log that were not written, because its file was too slow or failed",
    labelNames: ["log"],
    registers: [],
    collect() {
      this.reset();
      this.inc(
        { log: "access" },
        writers.reduce((sum, each) => sum + each.dropped, 0),
      );
    },
  }),
];
