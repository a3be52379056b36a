import { ApiError } from "../../control/api/errors.ts";

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

/** An error of the API that bindings translate for scripts. */
export class WorkflowError extends ApiError {
  readonly scriptMessage: string;
  constructor(status: number, code: number, message: string, scriptMessage: string, more = {}) {
    super(status, code, message, more);
    this.scriptMessage = scriptMessage;
  }
}

const prefix = "workflows.api.error";
const cannot = (what: "pause" | "resume" | "terminate"): WorkflowError =>
  new WorkflowError(
    409,
    10401,
    `${prefix}.instance.cannot_${what}`,
    `(instance.cannot_${what}) Cannot ${what} instance since its on a finite state`,
  );

export const workflowErrors = {
  workflowNotFound: (name: string) =>
    new WorkflowError(
      404,
      10200,
      `${prefix}.workflow.not_found`,
      `(workflow.not_found) Workflow "${name}" does not exist`,
    ),
  versionNotFound: () =>
    new WorkflowError(404, 10201, `${prefix}.version.not_found`, "(version.not_found) Version not found"),
  noScript: (scriptName: string) =>
    new WorkflowError(
      400,
      10202,
      `${prefix}.workflow.script_not_found: "${scriptName}" has no version that runs`,
      `(workflow.script_not_found) The script "${scriptName}" has no version that runs`,
    ),
  instanceNotFound: () =>
    new WorkflowError(
      404,
      10400,
      `${prefix}.instance.not_found`,
      "(instance.not_found) Provided id does not exist",
    ),
  alreadyExists: () =>
    new WorkflowError(
      409,
      10405,
      `${prefix}.instance.already_exists`,
      "(instance.already_exists) Instance already exists",
    ),
  duplicateInBatch: () =>
    new WorkflowError(
      409,
      10415,
      `${prefix}.instance.duplicate_in_batch`,
      "(instance.duplicate_in_batch) The batch contains this id twice",
    ),
  invalidId: (id: unknown) =>
    new WorkflowError(
      400,
      10410,
      `${prefix}.instance.invalid_id: expected 1 to 100 letters, digits, "_" and "-" but received ${JSON.stringify(id)}`,
      "(instance.invalid_id) Instance ID is invalid",
      { pointer: "/body/instance_id" },
    ),
  cannotPause: () => cannot("pause"),
  cannotResume: () => cannot("resume"),
  cannotTerminate: () => cannot("terminate"),
  cannotRestart: (why: string) =>
    new WorkflowError(
      409,
      10401,
      `${prefix}.instance.cannot_restart: ${why}`,
      `(instance.cannot_restart) ${why}`,
    ),
  inFiniteState: () =>
    new WorkflowError(
      409,
      10402,
      `${prefix}.instance.in_finite_state`,
      "(instance.in_finite_state) Instance reached a finite state, cannot send events to it",
    ),
  stepNotFound: (name: string) =>
    new WorkflowError(
      404,
      10403,
      `${prefix}.step.not_found: "${name}"`,
      `(step.not_found) Step "${name}" not found`,
    ),
  queueFull: (max: number) =>
    new WorkflowError(
      429,
      10429,
      `${prefix}.queue_full: ${max} instances are queued`,
      `(queue_full) ${max} instances are already queued`,
      { retryAfterSeconds: 1 },
    ),
  tooManyCreated: (retryAfterSeconds: number) =>
    new WorkflowError(
      429,
      10429,
      `${prefix}.instance.create_rate: too many instances are created in a second`,
      "(instance.create_rate) Too many instances are created in a second",
      { retryAfterSeconds },
    ),
  storageFault: () =>
    new WorkflowError(
      503,
      10503,
      `${prefix}.storage_unavailable: the database accepts no writes at the moment; running instances wait`,
      "(storage_unavailable) The database accepts no writes at the moment",
      { retryAfterSeconds: 1 },
    ),
  diskFull: () =>
    new WorkflowError(
      507,
      10507,
      `${prefix}.disk_full: the disk of this installation is full; running instances wait`,
      "(disk_full) The disk of this installation is full",
      { retryAfterSeconds: 60 },
    ),
  moved: () =>
    new WorkflowError(
      503,
      10504,
      `${prefix}.instance.unreachable: its node does not respond; another node takes it over`,
      "(instance.unreachable) The node that owns the instance does not respond",
      { retryAfterSeconds: 5 },
    ),
  invalid: (what: string, pointer?: string) =>
    new WorkflowError(400, 9207, what, `(body) ${what}`, pointer === undefined ? {} : { pointer }),
};
