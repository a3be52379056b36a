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
import { storage } from "../../platform/capability.ts";
import { repeat } from "../../platform/util/repeat.ts";
import { logpushErrorCodes } from "./api-errors.ts";
import { AuditExporter } from "./audit-exporter.ts";
import { Collector } from "./collection/collector.ts";
import { auditLogs } from "./data-sets/audit-logs.ts";
import { auditLogsV2 } from "./data-sets/audit-logs-v2.ts";
import { dnsLogs } from "./data-sets/dns-logs.ts";
import { declaration } from "./declaration.ts";
import { BucketOwnership } from "./destination/ownership.ts";
import { LogSender } from "./destination/send.ts";
import { logpushErrors } from "./errors.ts";
import type { ActiveJob, DataSetName } from "./job.ts";
import { Uploader } from "./uploader.ts";
import { intervalMs, logpushCollection } from "./collection/capability.ts";

const tickMs = 500;
const tidyMs = 10_000;
const exportMs = 1000;

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
  operations: async () => (await import("./api.ts")).logpushOperations,
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
