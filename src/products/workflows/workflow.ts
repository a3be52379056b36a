/**
 * How long ended instances are kept, in milliseconds. Null inherits from the account, then from the
 * installation.
 */
export interface Retention {
  successMs: number | null;
  errorMs: number | null;
}

/** A class of a script whose instances are durable. */
export interface Workflow {
  /** Row id, stored in the tables of instances as a small integer. */
  rid: number;
  id: string;
  accountId: string;
  name: string;
  scriptName: string;
  className: string;
  stepsMax: number | null;
  retention: Retention;
  /** Cron expressions; each creates an instance in every minute that it names. */
  crons: readonly string[];
  createdOn: number;
  modifiedOn: number;
}

/** The code of instances. An instance keeps the version that it started with. */
export interface WorkflowVersion {
  rid: number;
  id: string;
  workflowRid: number;
  scriptName: string;
  scriptVersion: string;
  className: string;
  stepsMax: number | null;
  createdOn: number;
}

/** Names of workflows, and (with other lengths) ids of instances and types of events. */
export const namePattern = /^[a-zA-Z0-9_][a-zA-Z0-9_-]{0,63}$/;
export const instanceIdPattern = /^[a-zA-Z0-9_][a-zA-Z0-9_-]{0,99}$/;
/** Only the platform assigns these ids. */
export const reservedIdPattern = /^cf_[0-9a-f]{64}$/;
export const eventTypePattern = instanceIdPattern;

export const workflowLimits = {
  valueBytesMax: 1024 * 1024,
  stepsMax: 25_000,
  batchMax: 100,
  /** Total over all workflows of an account. */
  schedulesMax: 100,
  retentionMsMax: 30 * 86_400_000,
};
