import { join } from "node:path";
import { capability } from "../../capability.ts";
import { accounts } from "../../control/accounts/capability.ts";
import { audit } from "../../control/audit/capability.ts";
import { tokens } from "../../control/tokens/capability.ts";
import { zones } from "../../control/zones/capability.ts";
import { nameServer } from "../../dns/name-server/capability.ts";
import type { NameServer } from "../../dns/name-server/name-server.ts";
import type { LoggedQuery } from "../../dns/name-server/query-log.ts";
import { outbound } from "../../edge/origin/capability.ts";
import { systemLookUp } from "../../edge/origin/resolve.ts";
import { accessLogs } from "../../platform/access-log/capability.ts";
import type { FieldName } from "../../platform/access-log/declaration.ts";
import { dataFolder, storage } from "../../platform/capability.ts";
import { repeat } from "../../platform/util/repeat.ts";
import { tails } from "../../workers/tail/capability.ts";
import type { TailEvent } from "../../workers/tail/event.ts";
import type { Tails } from "../../workers/tail/tails.ts";
import { logpushErrorCodes } from "./api-errors.ts";
import { logpushOperations } from "./api.ts";
import { AuditExporter } from "./audit-exporter.ts";
import { Collector } from "./collector.ts";
import { auditLogs } from "./data-sets/audit-logs.ts";
import { auditLogsV2 } from "./data-sets/audit-logs-v2.ts";
import { dnsLogs } from "./data-sets/dns-logs.ts";
import { httpRequests } from "./data-sets/http-requests.ts";
import { workersTraceEvents } from "./data-sets/workers-trace-events.ts";
import { declaration } from "./declaration.ts";
import { BucketOwnership } from "./destination/ownership.ts";
import { LogSender } from "./destination/send.ts";
import { logpushErrors } from "./errors.ts";
import type { ActiveJob, DataSetName } from "./job.ts";
import { LogpushJobs } from "./jobs.ts";
import { LogSpool } from "./spool/spool.ts";
import { Uploader } from "./uploader.ts";

const tickMs = 500;
const tidyMs = 10_000;
const exportMs = 1000;

const intervalMs = ({ logpushIntervalSeconds }: { logpushIntervalSeconds: number }): number =>
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

function readQueries(
  source: NameServer,
  collector: Collector<LoggedQuery>,
  jobs: readonly ActiveJob[],
): void {
  const hadJobs = !collector.isEmpty;
  if (!collector.use(jobs) && !hadJobs) return;
  source.readQueries(
    jobs.map(({ zoneId }) => zoneId!),
    (queries) => {
      for (const query of queries) collector.take(query.zoneId, query);
    },
  );
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
  metrics: async ({ logpushSpool }) => (await import("./metrics.ts")).spoolMetrics(logpushSpool),
  async close({ logpushRequests, logpushRuns }) {
    await Promise.all([logpushRequests.close(), logpushRuns.close()]);
  },
});

/** The API of Logpush, and the uploads of this node. */
export const logpush = capability({
  name: "Logpush",
  declares: declaration,
  needs: [storage, logpushCollection, accounts, audit, zones, tokens, outbound, nameServer],
  create({ config, logger, edgeSettings, policy, ...needed }) {
    const sender = new LogSender({
      policy,
      lookUp: systemLookUp(),
      timeoutMs: config.logpushTimeoutSeconds * 1000,
      ca: edgeSettings.originCa,
      localAddress: edgeSettings.originSourceAddress,
    });
    const { logpushJobs: jobs, logpushSpool: spool } = needed;
    const options = { spool, intervalMs: intervalMs(config) };
    const audits = {
      audit_logs: new Collector({ dataSet: auditLogs, ...options }),
      audit_logs_v2: new Collector({ dataSet: auditLogsV2, ...options }),
    };
    const entries = Object.values(audits);
    const queries = new Collector({ dataSet: dnsLogs(config.colo), ...options });
    jobs.onActive((active) => {
      const of = (name: DataSetName) => active.filter(({ dataSet }) => dataSet === name);
      audits.audit_logs.use(of("audit_logs"));
      audits.audit_logs_v2.use(of("audit_logs_v2"));
      readQueries(needed.nameServer, queries, of("dns_logs"));
    });
    return {
      logpushCollectors: [...entries, queries],
      auditExporter: new AuditExporter(needed.storage, jobs, spool, entries),
      logpushOwnership: new BucketOwnership((text) => needed.tokens.hash(text), sender),
      uploader: new Uploader({
        jobs,
        spool,
        sender,
        logger,
        disableAfterMs: config.logpushDisableAfterHours * 3_600_000,
      }),
    };
  },
  operations: logpushOperations,
  errors: [{ title: "Logpush", errors: logpushErrors, codes: logpushErrorCodes }],
  metrics: async ({ uploader, logpushSpool }) =>
    (await import("./metrics.ts")).uploadMetrics(uploader, logpushSpool),
  run({ uploader, auditExporter, logger, logpushRequests, logpushCollectors }) {
    const stops = [
      repeat(
        () => uploader.tick(),
        { everyMs: tickMs },
        { logger, message: "looking for due Logpush uploads failed" },
      ),
      repeat(
        () => auditExporter.tick(),
        { everyMs: exportMs },
        { logger, message: "writing the audit log to the spool of Logpush failed" },
      ),
      repeat(
        () => uploader.tidy(),
        { everyMs: tidyMs },
        { logger, message: "cleaning the spool of Logpush failed" },
      ),
    ];
    return async (deadlineMs) => {
      await Promise.all(stops.map((stop) => stop()));
      await Promise.all([logpushRequests, ...logpushCollectors].map((collector) => collector.seal()));
      await uploader.stop(deadlineMs);
    };
  },
  async close({ logpushCollectors }) {
    await Promise.all(logpushCollectors.map((collector) => collector.close()));
  },
});
