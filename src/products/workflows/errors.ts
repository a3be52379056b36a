import { DomainError } from "../../platform/domain-error.ts";

/** An error with a second message, which scripts get from their bindings. */
export class WorkflowError<Kind extends string = string> extends DomainError<Kind> {
  readonly scriptMessage: string;
  constructor(
    kind: Kind,
    message: string,
    scriptMessage: string,
    more: { pointer?: string | undefined; retryAfterSeconds?: number } = {},
  ) {
    super(kind, { message, ...more });
    this.scriptMessage = scriptMessage;
  }
}

const prefix = "workflows.api.error";
const cannot = <Kind extends string>(kind: Kind, action: string): WorkflowError<Kind> =>
  new WorkflowError(
    kind,
    `${prefix}.instance.cannot_${action}`,
    `(instance.cannot_${action}) Cannot ${action} instance since its on a finite state`,
  );

export const workflowErrors = {
  workflowNotFound: (name: string) =>
    new WorkflowError(
      "workflows.workflowNotFound",
      `${prefix}.workflow.not_found`,
      `(workflow.not_found) Workflow "${name}" does not exist`,
    ),
  versionNotFound: () =>
    new WorkflowError(
      "workflows.versionNotFound",
      `${prefix}.version.not_found`,
      "(version.not_found) Version not found",
    ),
  noScript: (scriptName: string) =>
    new WorkflowError(
      "workflows.noScript",
      `${prefix}.workflow.script_not_found: "${scriptName}" has no version that runs`,
      `(workflow.script_not_found) The script "${scriptName}" has no version that runs`,
    ),
  instanceNotFound: () =>
    new WorkflowError(
      "workflows.instanceNotFound",
      `${prefix}.instance.not_found`,
      "(instance.not_found) Provided id does not exist",
    ),
  alreadyExists: () =>
    new WorkflowError(
      "workflows.alreadyExists",
      `${prefix}.instance.already_exists`,
      "(instance.already_exists) Instance already exists",
    ),
  duplicateInBatch: () =>
    new WorkflowError(
      "workflows.duplicateInBatch",
      `${prefix}.instance.duplicate_in_batch`,
      "(instance.duplicate_in_batch) The batch contains this id twice",
    ),
  invalidId: (id: unknown) =>
    new WorkflowError(
      "workflows.invalidId",
      `${prefix}.instance.invalid_id: expected 1 to 100 letters, digits, "_" and "-" but received ${JSON.stringify(id)}`,
      "(instance.invalid_id) Instance ID is invalid",
      { pointer: "/body/instance_id" },
    ),
  cannotPause: () => cannot("workflows.cannotPause", "pause"),
  cannotResume: () => cannot("workflows.cannotResume", "resume"),
  cannotTerminate: () => cannot("workflows.cannotTerminate", "terminate"),
  cannotRestart: (why: string) =>
    new WorkflowError(
      "workflows.cannotRestart",
      `${prefix}.instance.cannot_restart: ${why}`,
      `(instance.cannot_restart) ${why}`,
    ),
  inFiniteState: () =>
    new WorkflowError(
      "workflows.inFiniteState",
      `${prefix}.instance.in_finite_state`,
      "(instance.in_finite_state) Instance reached a finite state, cannot send events to it",
    ),
  stepNotFound: (name: string) =>
    new WorkflowError(
      "workflows.stepNotFound",
      `${prefix}.step.not_found: "${name}"`,
      `(step.not_found) Step "${name}" not found`,
    ),
  queueFull: (max: number) =>
    new WorkflowError(
      "workflows.queueFull",
      `${prefix}.queue_full: ${max} instances are queued`,
      `(queue_full) ${max} instances are already queued`,
      { retryAfterSeconds: 1 },
    ),
  tooManyCreated: (retryAfterSeconds: number) =>
    new WorkflowError(
      "workflows.tooManyCreated",
      `${prefix}.instance.create_rate: too many instances are created in a second`,
      "(instance.create_rate) Too many instances are created in a second",
      { retryAfterSeconds },
    ),
  storageFault: () =>
    new WorkflowError(
      "workflows.storageFault",
      `${prefix}.storage_unavailable: the database accepts no writes at the moment; running instances wait`,
      "(storage_unavailable) The database accepts no writes at the moment",
      { retryAfterSeconds: 1 },
    ),
  diskFull: () =>
    new WorkflowError(
      "workflows.diskFull",
      `${prefix}.disk_full: the disk of this installation is full; running instances wait`,
      "(disk_full) The disk of this installation is full",
      { retryAfterSeconds: 60 },
    ),
  moved: () =>
    new WorkflowError(
      "workflows.moved",
      `${prefix}.instance.unreachable: its node does not respond; another node takes it over`,
      "(instance.unreachable) The node that owns the instance does not respond",
      { retryAfterSeconds: 5 },
    ),
  invalid: (what: string, pointer?: string) =>
    new WorkflowError("workflows.invalid", what, `(body) ${what}`, { pointer }),
};

const temporary: ReadonlySet<string> = new Set([
  "workflows.storageFault",
  "workflows.diskFull",
  "workflows.moved",
]);
/** True if the same call may succeed later, without a change by its caller. */
export const isTemporary = ({ kind }: WorkflowError): boolean => temporary.has(kind);
