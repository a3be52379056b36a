import type { EdgeMetrics } from "../processes/protocol.ts";
import { clock } from "../timers/clock.ts";
import { metricPrefix } from "./instruments.ts";

/** The state of a node in a few numbers. Counts are since its start; a figure without a metric is null. */
export interface NodeFigures {
  /** Milliseconds since 1970. */
  measuredOn: number;
  requests: number;
  /** Responses with a status of 500 or above, including those of origins. */
  failedRequests: number;
  /** Median and 95th percentile of the response time in seconds. */
  p50Seconds: number | null;
  p95Seconds: number | null;
  apiCalls: number;
  scriptRuns: number;
  failedScriptRuns: number;
  cells: number;
  queueMessages: number;
  oldestMessageSeconds: number;
  /** First attempts of alarms that began more than a second late. */
  lateAlarms: number;
  workflowLagSeconds: number;
  diskFreeBytes: number | null;
  failingCertificates: number;
  restarts: number;
  uncaughtExceptions: number;
}

type Sample = EdgeMetrics[number]["values"][number] & { metricName?: string };
type Wanted = (labels: Sample["labels"]) => boolean;

const keptMs = 5000;

/** Reads the figures of a node. Concurrent calls share one reading. */
export function figuresReader(read: () => Promise<EdgeMetrics>): () => Promise<NodeFigures> {
  let kept: { at: number; figures: Promise<NodeFigures> } | undefined;
  return async () => {
    const now = clock.now();
    if (kept === undefined || Math.abs(now - kept.at) > keptMs) {
      kept = { at: now, figures: read().then((metrics) => figuresOf(metrics, now)) };
    }
    const asked = kept;
    try {
      return await asked.figures;
    } catch (error) {
      if (kept === asked) kept = undefined;
      throw error;
    }
  };
}

/** The figures in the metrics of a node. */
export function figuresOf(metrics: EdgeMetrics, measuredOn: number): NodeFigures {
  const byName = new Map(metrics.map(({ name, values }) => [name, values as Sample[]]));
  const valuesOf = (name: string): Sample[] => byName.get(metricPrefix + name) ?? [];
  const sum = (name: string, wanted: Wanted = () => true): number =>
    valuesOf(name).reduce((total, { labels, value }) => total + (wanted(labels) ? value : 0), 0);
  const largest = (name: string): number => Math.max(0, ...valuesOf(name).map(({ value }) => value));
  const seconds = valuesOf("edge_request_duration_seconds");
  const free = valuesOf("disk_bytes").find(({ labels }) => labels["of"] === "free");
  return {
    measuredOn,
    requests: sum("edge_requests_total"),
    failedRequests: sum("edge_requests_total", ({ status }) => String(status).startsWith("5")),
    p50Seconds: quantile(seconds, 0.5),
    p95Seconds: quantile(seconds, 0.95),
    apiCalls: sum("api_requests_total"),
    scriptRuns: sum("script_invocations_total"),
    failedScriptRuns: sum("script_invocations_total", ({ result }) => result !== "ok"),
    cells: sum("cells") + sum("object_cells"),
    queueMessages: sum("queue_backlog_messages"),
    oldestMessageSeconds: largest("queue_oldest_message_seconds"),
    lateAlarms: above(valuesOf("alarm_lateness_seconds"), 1),
    workflowLagSeconds: largest("workflow_lag_seconds"),
    diskFreeBytes: free === undefined ? null : free.value,
    failingCertificates: sum("certificate_packs_failing"),
    restarts: sum("process_restarts_total"),
    uncaughtExceptions: sum("uncaught_exceptions_total"),
  };
}

/** The cumulative counts of a histogram by upper bound, over all of its labels. */
function bucketsOf(samples: readonly Sample[]): [bound: number, count: number][] {
  const counts = new Map<number, number>();
  for (const { labels, value } of samples) {
    const { le } = labels as { le?: number | string };
    if (le === undefined) continue;
    const bound = le === "+Inf" ? Infinity : Number(le);
    counts.set(bound, (counts.get(bound) ?? 0) + value);
  }
  return [...counts].sort(([a], [b]) => a - b);
}

/** The upper bound of the bucket that holds the quantile; null without samples. */
function quantile(samples: readonly Sample[], share: number): number | null {
  const buckets = bucketsOf(samples);
  const total = buckets.at(-1)?.[1] ?? 0;
  if (total === 0) return null;
  const [bound] = buckets.find(([, count]) => count >= total * share)!;
  return Number.isFinite(bound) ? bound : (buckets.at(-2)?.[0] ?? null);
}

/** Samples above a bound of the histogram. */
function above(samples: readonly Sample[], bound: number): number {
  const buckets = bucketsOf(samples);
  const within = buckets.findLast(([each]) => each <= bound)?.[1] ?? 0;
  return (buckets.at(-1)?.[1] ?? 0) - within;
}
