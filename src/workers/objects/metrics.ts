import { open, readdir, readlink, rm } from "node:fs/promises";
import { join } from "node:path";
import { Histogram, type Metric } from "prom-client";
import {
  counter,
  counters,
  gauge,
  metricPrefix,
  samplesBy,
} from "../../platform/observability/instruments.ts";
import type { ObjectFolders } from "../../sandbox/objects/folders.ts";
import type { ObjectCells } from "../../sandbox/objects/object-cells.ts";
import type { ShardLease } from "../../platform/object-shards/lease.ts";
import type { Alarms } from "./alarms/alarms.ts";

/** Metrics of Durable Objects, including those of D1 databases. */
export const objectMetrics = (cells: ObjectCells, folders: ObjectFolders, alarms: Alarms): Metric[] => [
  ...alarmMetrics(alarms),
  gauge("object_cells", "Running processes of Durable Objects", () => cells.counts.cells),
  gauge(
    "object_events_running",
    "Requests, method calls and sockets of objects in progress",
    () => cells.counts.requests,
  ),
  gauge("objects_live", "Objects and facets in memory with an open database", async () =>
    liveObjects(cells.pids),
  ),
  gauge("object_fsync_seconds", "Time to write and flush 4 KiB where objects are stored", async () =>
    fsyncSeconds(folders.path),
  ),
  counters(
    "object_events_total",
    "Requests and method calls of objects; local calls stay in a process, which reports their number within ten seconds",
    ["kind"],
    () =>
      samplesBy("kind", {
        request: cells.events.requests,
        method: cells.events.calls,
        local: cells.events.localCalls,
      }),
  ),
  counters(
    "object_faults_total",
    "Processes of Durable Objects that were ended after a fault, and calls that workerd failed to make",
    ["of"],
    () => samplesBy("of", { cell: cells.events.cellFaults, facet: cells.events.facetFaults }),
  ),
];

function alarmMetrics(alarms: Alarms): Metric[] {
  const lateness = new Histogram({
    name: `${metricPrefix}alarm_lateness_seconds`,
    help: "Delay from the due time of an alarm to its first attempt",
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 30],
    registers: [],
  });
  alarms.onRun = (lateMs) => lateness.observe(lateMs / 1000);
  return [
    lateness,
    gauge("alarms", "Alarms of objects that are set", () => alarms.size),
    counters("alarm_runs_total", "Alarms that ran, and attempts that failed", ["result"], () =>
      samplesBy("result", { ran: alarms.counts.ran, failed: alarms.counts.failed }),
    ),
  ];
}

/** Metrics of the shards of a node; `lease` is undefined where one process has all objects. */
export const shardMetrics = (
  lease: Pick<ShardLease, "shards" | "takenOver" | "renewedMsAgo"> | undefined,
): Metric[] => [
  gauge("object_shards", "Shards of objects that this node has", () => lease?.shards.length),
  counter(
    "object_shards_taken_total",
    "Shards of objects that this node has made ready since its start",
    () => lease?.takenOver ?? 0,
  ),
  gauge("object_lease_age_seconds", "Time since this node's lease on shards of objects was renewed", () =>
    lease?.renewedMsAgo === undefined ? undefined : lease.renewedMsAgo / 1000,
  ),
];

/** workerd has the database of a live object open. Platforms without /proc show none. */
async function liveObjects(pids: readonly number[]): Promise<number> {
  let count = 0;
  for (const pid of pids) {
    const folder = `/proc/${pid}/fd`;
    const names = await readdir(folder).catch(() => []);
    const paths = await Promise.all(names.map(async (name) => readlink(join(folder, name)).catch(() => "")));
    count += paths.filter((path) => /\/[0-9a-f]{64}\.\d+\.sqlite$/.test(path)).length;
  }
  return count;
}

const block = Buffer.alloc(4096);

/** Undefined while no object has been stored. */
async function fsyncSeconds(folder: string): Promise<number | undefined> {
  const path = join(folder, `fsync-${process.pid}`);
  try {
    const file = await open(path, "w", 0o600);
    try {
      const startedAt = performance.now();
      await file.write(block);
      await file.datasync();
      return (performance.now() - startedAt) / 1000;
    } finally {
      await file.close();
      await rm(path, { force: true });
    }
  } catch {
    return undefined;
  }
}
