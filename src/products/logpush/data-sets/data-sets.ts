import type { DataSetName } from "../job.ts";
import { auditLogs } from "./audit-logs.ts";
import { auditLogsV2 } from "./audit-logs-v2.ts";
import type { DataSet } from "./data-set.ts";
import { dnsLogs } from "./dns-logs.ts";
import { httpRequests } from "./http-requests.ts";
import { workersTraceEvents } from "./workers-trace-events.ts";

export type DataSets = Readonly<Record<DataSetName, Pick<DataSet<never>, "scope" | "descriptions">>>;

/** The data sets, as the API describes them. */
export const dataSets: DataSets = {
  http_requests: httpRequests(""),
  dns_logs: dnsLogs(""),
  audit_logs: auditLogs,
  audit_logs_v2: auditLogsV2,
  workers_trace_events: workersTraceEvents,
};
