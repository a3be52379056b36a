import { Counter, type Metric } from "prom-client";
import { metricPrefix } from "../../platform/observability/metrics.ts";
import type { AnswerCounts } from "./answer-counts.ts";

/** Metrics of the name server. */
export function nameServerMetrics(count: () => Promise<AnswerCounts>): Metric[] {
  return [
    new Counter({
      name: `${metricPrefix}dns_answers_total`,
      help: "Responses of the name server; an empty code counts rate-limited queries",
      labelNames: ["transport", "code"],
      registers: [],
      async collect() {
        const counts = await count();
        this.reset();
        for (const transport of ["udp", "tcp"] as const)
          for (const [code, answers] of counts[transport].entries())
            if (answers > 0) this.inc({ transport, code }, answers);
        this.inc({ transport: "udp", code: "" }, counts.withheld);
      },
    }),
  ];
}
