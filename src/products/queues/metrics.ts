import type { Metric } from "prom-client";
import { gauges, type Sample } from "../../platform/observability/instruments.ts";
import { clock } from "../../platform/timers/clock.ts";
import type { QueueMessages } from "./messages.ts";
import type { Queues } from "./queues.ts";

/** Only the longest queues have series of their own. The messages of all others are under `other`. */
const shownMax = 1000;
/** Counting reads an index of all messages. */
const freshMs = 5_000;

interface Shown {
  labels: Record<string, string>;
  count: number;
  oldestSeconds: number;
}

/** Metrics of the waiting messages of the whole installation. */
export function queueMetrics(
  queues: Pick<Queues, "all">,
  messages: Pick<QueueMessages, "allBacklogs">,
): Metric[] {
  let shown: Promise<Shown[]> = Promise.resolve([]);
  let validUntil = 0;
  const read = async (): Promise<Shown[]> => {
    const now = clock.now();
    if (now >= validUntil) {
      validUntil = now + freshMs;
      shown = shownOf(queues, messages, now);
    }
    return shown;
  };
  const samples = async (value: (each: Shown) => number): Promise<Sample[]> =>
    (await read()).map((each): Sample => [each.labels, value(each)]);
  const names = ["account", "queue"];
  return [
    gauges("queue_backlog_messages", "Messages in a queue, including those being delivered", names, () =>
      samples(({ count }) => count),
    ),
    gauges("queue_oldest_message_seconds", "Age of the oldest message of a queue", names, () =>
      samples(({ oldestSeconds }) => oldestSeconds),
    ),
  ];
}

async function shownOf(
  queues: Pick<Queues, "all">,
  messages: Pick<QueueMessages, "allBacklogs">,
  now: number,
): Promise<Shown[]> {
  const backlogs = new Map((await messages.allBacklogs()).map((each) => [each.queueNumber, each]));
  const all = Array.from(queues.all(), ({ number, accountId, name }): Shown => {
    const backlog = backlogs.get(number);
    const oldestSeconds = backlog === undefined ? 0 : Math.max(0, now - backlog.oldestOn) / 1000;
    return { labels: { account: accountId, queue: name }, count: backlog?.count ?? 0, oldestSeconds };
  }).toSorted((a, b) => b.count - a.count);
  const others = all.slice(shownMax);
  if (others.length === 0) return all;
  const other: Shown = {
    labels: { account: "", queue: "other" },
    count: others.reduce((sum, { count }) => sum + count, 0),
    oldestSeconds: others.reduce((most, { oldestSeconds }) => Math.max(most, oldestSeconds), 0),
  };
  return [...all.slice(0, shownMax), other];
}
