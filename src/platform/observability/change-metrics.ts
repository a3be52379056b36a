import type { Metric } from "prom-client";
import type { Storage } from "../storage/storage.ts";
import { counters, gauge, gauges, samplesBy } from "./instruments.ts";

/** Metrics of how a node follows the changes of others. On SQLite, where there are no others, only the lag. */
export function changeMetrics(storage: Pick<Storage, "following" | "lagSeconds">): Metric[] {
  return [
    gauge(
      "change_lag_seconds",
      "Age of the oldest change that is not in effect at this node, or time since it last looked for one",
      () => storage.lagSeconds,
    ),
    gauges(
      "change_seq",
      "Number of the last change that all nodes have committed, and of the last one in effect at this node",
      ["of"],
      () => {
        const { following } = storage;
        if (following === undefined) return [];
        return samplesBy("of", { installation: following.headSeq, node: following.takenOver });
      },
    ),
    gauge(
      "change_notified",
      "1 while PostgreSQL notifies this node of changes, 0 while the node only polls for them",
      () => storage.following && Number(storage.following.isNotified),
    ),
    counters(
      "change_reloads_total",
      "Times that the node read everything again because changes were missing",
      ["reason"],
      () => samplesBy("reason", storage.following?.reloads ?? {}),
    ),
  ];
}
