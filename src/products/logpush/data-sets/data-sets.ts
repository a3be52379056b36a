import type { DataSetName } from "../job.ts";
import { auditLogs } from "./audit-logs.ts";
import type { DataSet } from "./data-set.ts";
import { httpRequests } from "./http-requests.ts";

export type DataSets = Readonly<Record<DataSetName, Pick<DataSet<never>, "scope" | "descriptions">>>;

/** The data sets, as the API describes them. */
export const dataSets: DataSets = {
  http_requests: httpRequests(""),
  audit_logs: auditLogs,
};
