import type { EventPredicate } from "./filter.ts";

/** The data sets that jobs can push. */
export const dataSetNames = [
  "http_requests",
  "dns_logs",
  "audit_logs",
  "audit_logs_v2",
  "workers_trace_events",
] as const;
export type DataSetName = (typeof dataSetNames)[number];

export const timestampFormats = ["unixnano", "unix", "rfc3339", "rfc3339ms", "rfc3339ns"] as const;
export type TimestampFormat = (typeof timestampFormats)[number];

/** How the events of a job are written. */
export interface LogOutput {
  fieldNames: readonly string[];
  timestampFormat: TimestampFormat;
  /** The ratio of events that are pushed: above 0, at most 1. */
  sampleRate: number;
  batchPrefix: string;
  batchSuffix: string;
  recordPrefix: string;
  recordSuffix: string;
  recordDelimiter: string;
  fieldDelimiter: string;
  /** Writes `x{` for each `${` (CVE-2021-44228). */
  hidesLookups: boolean;
}

/** The owner of a job: a zone, or an account. */
export interface JobOwner {
  accountId: string;
  zoneId: string | undefined;
}

/** The parts of a job that its owner chooses. */
export interface JobInput {
  dataSet: DataSetName;
  name: string;
  /** Contains credentials, so it is only for the sender. */
  destination: string;
  isEnabled: boolean;
  output: LogOutput;
  /** JSON, as the client wrote it. */
  filter: string | undefined;
  frequency: "high" | "low";
  /** Limits of one upload; 0 for none. */
  uploadBytesMax: number;
  uploadRecordsMax: number;
  uploadIntervalSeconds: number;
}

/** The results of a job's uploads. Times are epoch milliseconds. */
export interface JobState {
  lastComplete: number | null;
  lastError: number | null;
  errorMessage: string | null;
  failingSince: number | null;
  /** For events that are rows of the database: the id of the last row that is in a spool. */
  cursor: string | null;
}

export interface LogpushJob extends JobInput, JobState, JobOwner {
  id: number;
  createdOn: number;
  modifiedOn: number;
}

/** A job that collects events, in memory. */
export interface ActiveJob extends LogpushJob {
  /** The filter; undefined if the job wants all events. */
  matches: EventPredicate | undefined;
  /** The fields that the filter reads. */
  filterFields: ReadonlySet<string>;
}

/** Maximum number of jobs of a zone or an account. */
export const jobsMax = 10;
export const fieldsMax = 100;
