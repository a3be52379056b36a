import type { Metric } from "prom-client";
import { counters, gauge, gauges, samplesBy } from "../../platform/observability/instruments.ts";
import { statuses, type Status } from "./transitions.ts";

/** Measures of the engine for the metrics. */
export interface WorkflowMeasures {
  /** Ended attempts of steps by result. */
  readonly attempts: Readonly<Record<string, number>>;
  /** How late the most overdue timer of this node is. */
  lateMs(): number;
}

/** Counting reads an index of all instances. */
const freshMs = 30_000;

/** Metrics of workflows. */
export function workflowMetrics(
  measures: WorkflowMeasures,
  countByStatus: () => Promise<Partial<Record<Status, number>>>,
): Metric[] {
  let counts: Promise<Partial<Record<Status, number>>> = Promise.resolve({});
  let validUntil = 0;
  const none = Object.fromEntries(statuses.map((status) => [status, 0]));
  return [
    gauges(
      "workflow_instances",
      "Instances of workflows by status, those that have ended until they expire",
      ["status"],
      async () => {
        if (performance.now() >= validUntil) {
          validUntil = performance.now() + freshMs;
          counts = countByStatus();
        }
        return samplesBy("status", { ...none, ...(await counts) });
      },
    ),
    counters("workflow_steps_total", "Attempts of steps that have ended at this node", ["result"], () =>
      samplesBy("result", measures.attempts),
    ),
    gauge(
      "workflow_lag_seconds",
      "How late the most overdue sleep, retry or timeout of this node is",
      () => measures.lateMs() / 1000,
    ),
  ];
}
