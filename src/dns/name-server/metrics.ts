import type { Metric } from "prom-client";
import { counters, type Sample } from "../../platform/observability/instruments.ts";
import type { AnswerCounts } from "./answer-counts.ts";

/** Metrics of the name server. */
export const nameServerMetrics = (count: () => Promise<AnswerCounts>): Metric[] => [
  counters(
    "dns_answers_total",
    "Responses of the name server; an empty code counts rate-limited queries",
    ["transport", "code"],
    async () => {
      const counts = await count();
      const answered = (["udp", "tcp"] as const).flatMap((transport) =>
        [...counts[transport].entries()]
          .filter(([, answers]) => answers > 0)
          .map(([code, answers]): Sample => [{ transport, code }, answers]),
      );
      return [...answered, [{ transport: "udp", code: "" }, counts.withheld]];
    },
  ),
];
