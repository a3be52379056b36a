import { Counter, type Metric } from "prom-client";
import { metricPrefix } from "../../platform/observability/metrics.ts";
import type { Audit } from "./audit.ts";

/** Metrics of the audit log. */
export const auditMetrics = (audit: Pick<Audit, "refusedCount">): Metric[] => [
  new Counter({
    name: `${metricPrefix}api_refused_calls_total`,
    help: "Calls of the management API that were refused with 401 or 403",
    registers: [],
    collect() {
      this.reset();
      this.inc(audit.refusedCount);
    },
  }),
];
