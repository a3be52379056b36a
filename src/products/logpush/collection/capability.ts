import { join } from "node:path";
import { capability } from "../../../capability.ts";
import { zones } from "../../../control/zones/capability.ts";
import { accessLogs } from "../../../platform/access-log/capability.ts";
import type { FieldName } from "../../../platform/access-log/declaration.ts";
import { dataFolder, storage } from "../../../platform/capability.ts";
import { tails } from "../../../workers/tail/capability.ts";
import type { TailEvent } from "../../../workers/tail/event.ts";
import type { Tails } from "../../../workers/tail/tails.ts";
import { Collector } from "./collector.ts";
import { httpRequests } from "../data-sets/http-requests.ts";
import { workersTraceEvents } from "../data-sets/workers-trace-events.ts";
import type { ActiveJob } from "../job.ts";
import { LogpushJobs } from "../jobs.ts";
import { LogSpool } from "../spool/spool.ts";

/** How long a file of a job's lines is filled. */
export const intervalMs = ({ logpushIntervalSeconds }: { logpushIntervalSeconds: number }): number =>
  logpushIntervalSeconds * 1000;

/** The fields that jobs use, so that sources can skip the others. */
const fieldsOf = (jobs: readonly ActiveJob[]): ReadonlySet<string> =>
  new Set(jobs.flatMap(({ output, filterFields }) => [...output.fieldNames, ...filterFields]));

/** Reads the runs of scripts from their tails while there are jobs for them. */
function readRuns(source: Tails, collector: Collector<TailEvent>, jobs: readonly ActiveJob[]): void {
  const hadJobs = !collector.isEmpty;
  if (collector.use(jobs))
    source.setConsumer({
      wants: (accountId) => collector.wants(accountId),
      consume: (accountId, event) => collector.take(accountId, event),
    });
  else if (hadJobs) source.setConsumer(undefined);
}

/** The jobs, and the collection of requests and runs, in every process that serves visitors. */
export const logpushCollection = capability({
  name: "Logpush collection",
  processes: "all",
  needs: [storage, dataFolder, accessLogs, zones, tails],
  async create({ config, folder, logger, ...needed }) {
    const spool = new LogSpool(join(folder, "logpush"), config.logpushSpoolMegabytes, logger);
    const jobs = new LogpushJobs(needed.storage);
    const options = { spool, intervalMs: intervalMs(config) };
    const requests = new Collector({ dataSet: httpRequests(config.colo), ...options });
    const runs = new Collector({ dataSet: workersTraceEvents, ...options });
    const { edgeLog } = needed;
    jobs.onActive((active) => {
      spool.setActive(active);
      const own = active.filter(({ dataSet }) => dataSet === "http_requests");
      edgeLog.read(
        requests.use(own)
          ? {
              fields: fieldsOf(own) as ReadonlySet<FieldName>,
              take(record) {
                const zone = record.view?.zone;
                if (zone !== undefined) requests.take(zone.id, record);
              },
            }
          : undefined,
      );
      readRuns(
        needed.tails,
        runs,
        active.filter(({ dataSet }) => dataSet === "workers_trace_events"),
      );
    });
    return { logpushJobs: jobs, logpushSpool: spool, logpushRequests: requests, logpushRuns: runs };
  },
  async load({ logpushJobs, logpushSpool }) {
    await logpushSpool.adopt(true);
    await logpushJobs.load();
  },
  metrics: async ({ logpushSpool }) => (await import("../metrics.ts")).spoolMetrics(logpushSpool),
  async close({ logpushRequests, logpushRuns }) {
    await Promise.all([logpushRequests.close(), logpushRuns.close()]);
  },
});
