import { Counter, Gauge, type Metric } from "prom-client";
import type { Storage } from "../storage/storage.ts";
import { metricPrefix } from "./metrics.ts";

/** Metrics of how a node follows the changes of others. On SQLite, where there are no others, only the lag. */
export function changeMetrics(storage: Pick<Storage, "following" | "lagSeconds">): Metric[] {
  return [
    new Gauge({
      name: `${metricPrefix}change_lag_seconds`,
      help: "Age of the oldest change that is not in effect at this node, or time since it last looked for one",
      registers: [],
      collect() {
        this.set(storage.lagSeconds);
      },
    }),
    new Gauge({
      name: `${metricPrefix}change_seq`,
      help: "Number of the last change that all nodes have committed, and of the last one in effect at this node",
      labelNames: ["of"],
      registers: [],
      collect() {
        if (storage.following === undefined) return;
        this.set({ of: "installation" }, storage.following.headSeq);
        this.set({ of: "node" }, storage.following.takenOver);
      },
    }),
    new Gauge({
      name: `${metricPrefix}change_notified`,
      help: "1 while PostgreSQL notifies this node of changes, 0 while it only asks for them",
      registers: [],
      collect() {
        if (storage.following !== undefined) this.set(storage.following.isNotified ? 1 : 0);
      },
    }),
    new Counter({
      name: `${metricPrefix}change_reloads_total`,
      help: "Times that everything was read again because changes were missing",
      labelNames: ["reason"],
      registers: [],
      collect() {
        this.reset();
        for (const [reason, count] of Object.entries(storage.following?.reloads ?? {}))
          this.inc({ reason }, count);
      },
    }),
  ];
}
