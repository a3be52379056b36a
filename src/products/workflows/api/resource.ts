import { z } from "zod";
import { isoTime } from "../../../platform/util/ids.ts";
import { scheduleOf, type InstanceRow } from "../instance.ts";
import type { History } from "../store/journal.ts";
import { shown, shownError, shownRollback, timeline } from "./timeline.ts";
import { statuses, type Status } from "../transitions.ts";
import { durationMs } from "../worker/duration.ts";
import { workflowLimits, type Retention, type Workflow, type WorkflowVersion } from "../workflow.ts";
import { workflowErrors } from "../errors.ts";

/** Wire shapes of workflows and their instances. */
const TimeSchema = z.string().meta({ format: "date-time" });
const NullableTimeSchema = TimeSchema.nullable();
export const ErrorSchema = z.object({ name: z.string(), message: z.string() });
const RollbackSchema = z.object({ outcome: z.enum(["complete", "failed"]), error: ErrorSchema.nullable() });
export const TriggerSchema = z.enum(["unknown", "api", "binding", "event", "cron"]);
export const StatusSchema = z.enum([...statuses, "rollingBack"]);

const CountsSchema = z.object(
  Object.fromEntries([...statuses, "rollingBack" as const].map((status) => [status, z.int()])) as Record<
    Status | "rollingBack",
    z.ZodInt
  >,
);
export const WorkflowSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    class_name: z.string(),
    script_name: z.string(),
    created_on: TimeSchema,
    modified_on: TimeSchema,
    triggered_on: NullableTimeSchema,
    instances: CountsSchema,
    schedules: z.array(z.object({ cron: z.string(), next_instance: TimeSchema.optional() })),
  })
  .meta({ id: "Workflow", description: "A class of a script whose instances are durable" });

export const WorkflowPutSchema = z.object({
  id: z.string(),
  name: z.string(),
  class_name: z.string(),
  script_name: z.string(),
  version_id: z.string(),
  created_on: TimeSchema,
  modified_on: TimeSchema,
  triggered_on: NullableTimeSchema,
  is_deleted: z.literal(0),
  terminator_running: z.literal(0),
});

export const VersionSchema = z
  .object({
    id: z.string(),
    workflow_id: z.string(),
    class_name: z.string(),
    created_on: TimeSchema,
    modified_on: TimeSchema,
    has_dag: z.boolean(),
    language: z.literal("javascript"),
    limits: z.object({ steps: z.int() }),
  })
  .meta({ id: "WorkflowVersion" });

export const CreatedSchema = z.object({
  id: z.string(),
  status: StatusSchema,
  version_id: z.string(),
  workflow_id: z.string(),
  trigger_source: TriggerSchema,
});

/** Longest time to wait for the end of an instance, in seconds. */
export const waitQuery = z.object({ wait: z.coerce.number().min(0).max(60).default(0) });
export const StatusResultSchema = z.object({
  status: StatusSchema,
  error: ErrorSchema.nullable(),
  output: z.json(),
  rollback: RollbackSchema.nullable(),
});
export const statusResource = (row: InstanceRow): z.input<typeof StatusResultSchema> => ({
  status: row.status,
  error: shownError(row.error),
  output: shown(row.output) as z.input<typeof StatusResultSchema>["output"],
  rollback: shownRollback(row.error),
});

export const InstanceSchema = z
  .object({
    id: z.string(),
    status: StatusSchema,
    version_id: z.string(),
    workflow_id: z.string(),
    created_on: TimeSchema,
    modified_on: TimeSchema,
    started_on: NullableTimeSchema,
    ended_on: NullableTimeSchema,
    trigger_source: TriggerSchema,
  })
  .meta({ id: "WorkflowInstance" });

const StepSchema = z.discriminatedUnion("type", [
  z.object({
    type: z.enum(["step", "rollback"]),
    name: z.string(),
    start: TimeSchema,
    end: NullableTimeSchema,
    success: z.boolean().nullable(),
    output: z.string().nullable(),
    error: ErrorSchema.nullable(),
    config: z.record(z.string(), z.json()),
    attempts: z.array(
      z.object({
        start: TimeSchema,
        end: NullableTimeSchema,
        success: z.boolean().nullable(),
        error: ErrorSchema.nullable(),
      }),
    ),
  }),
  z.object({
    type: z.literal("sleep"),
    name: z.string(),
    start: TimeSchema,
    end: TimeSchema,
    finished: z.boolean(),
    error: z.null(),
  }),
  z.object({
    type: z.literal("waitForEvent"),
    name: z.string(),
    start: TimeSchema,
    end: TimeSchema,
    finished: z.boolean(),
    event_type: z.string(),
    output: z.string().optional(),
    error: ErrorSchema.nullable(),
  }),
  z.object({ type: z.literal("termination"), trigger: z.object({ source: z.string() }) }),
]);
export const DetailsSchema = z
  .object({
    status: StatusSchema,
    params: z.json(),
    trigger: z.object({ source: TriggerSchema }),
    versionId: z.string(),
    queued: TimeSchema,
    start: NullableTimeSchema,
    end: NullableTimeSchema,
    success: z.boolean().nullable(),
    error: ErrorSchema.nullable(),
    output: z.json(),
    rollback: RollbackSchema.nullable(),
    schedule: z.object({ cron: z.string(), scheduledTime: z.int() }).optional(),
    step_count: z.int(),
    /** Warnings for the operator: steps in the journal that the code did not reach again. */
    warnings: z.array(z.string()),
    steps: z.array(StepSchema),
  })
  .meta({ id: "WorkflowInstanceDetails" });

export const workflowResource = (
  workflow: Workflow,
  counts: Partial<Record<Status, number>> | undefined,
  triggeredOn: number | undefined,
  schedules: readonly { cron: string; nextOn: number | undefined }[],
): z.input<typeof WorkflowSchema> => ({
  id: workflow.id,
  name: workflow.name,
  class_name: workflow.className,
  script_name: workflow.scriptName,
  created_on: isoTime(workflow.createdOn),
  modified_on: isoTime(workflow.modifiedOn),
  triggered_on: triggeredOn === undefined ? null : isoTime(triggeredOn),
  instances: {
    ...(Object.fromEntries(statuses.map((status) => [status, counts?.[status] ?? 0])) as Record<
      Status,
      number
    >),
    rollingBack: 0,
  },
  schedules: schedules.map(({ cron, nextOn }) => ({
    cron,
    ...(nextOn === undefined ? {} : { next_instance: isoTime(nextOn) }),
  })),
});

export const versionResource = (
  workflow: Workflow,
  version: WorkflowVersion,
  stepsMax: number,
): z.input<typeof VersionSchema> => ({
  id: version.id,
  workflow_id: workflow.id,
  class_name: version.className,
  created_on: isoTime(version.createdOn),
  modified_on: isoTime(version.createdOn),
  has_dag: false,
  language: "javascript",
  limits: { steps: version.stepsMax ?? stepsMax },
});

const timeOrNull = (timeMs: number | null): string | null => (timeMs === null ? null : isoTime(timeMs));

export const instanceResource = (
  row: InstanceRow,
  workflow: Workflow,
  versionId: string,
): z.input<typeof InstanceSchema> => ({
  id: row.id,
  status: row.status,
  version_id: versionId,
  workflow_id: workflow.id,
  created_on: isoTime(row.createdOn),
  modified_on: isoTime(row.modifiedOn),
  started_on: timeOrNull(row.startedOn),
  ended_on: timeOrNull(row.endedOn),
  trigger_source: row.trigger,
});

const success = ({ status }: InstanceRow): boolean | null =>
  status === "complete" ? true : status === "errored" || status === "terminated" ? false : null;

/**
 * An instance with its steps, as the API returns it. `order` is that of the steps; `simple` leaves out
 * their outputs.
 */
export function detailsResource(
  row: InstanceRow,
  history: History,
  versionId: string,
  { order, simple }: { order: "asc" | "desc"; simple: boolean },
): z.input<typeof DetailsSchema> {
  const steps = timeline(row, history) as z.input<typeof StepSchema>[];
  return {
    status: row.status,
    params: shown(row.params) as z.input<typeof DetailsSchema>["params"],
    trigger: { source: row.trigger },
    versionId,
    queued: isoTime(row.createdOn),
    start: timeOrNull(row.startedOn),
    end: timeOrNull(row.endedOn),
    success: success(row),
    error: shownError(row.error),
    output: shown(row.output) as z.input<typeof DetailsSchema>["output"],
    rollback: shownRollback(row.error),
    schedule: scheduleOf(row),
    step_count: history.stepCount,
    warnings: history.warnings,
    steps: simple ? [] : order === "desc" ? steps.toReversed() : steps,
  };
}

/** How long to keep an ended instance: milliseconds, or a text such as "5 minutes". */
const DurationSchema = z.union([z.number(), z.string().max(64)]);
export const RetentionSchema = z.strictObject({
  success_retention: DurationSchema.optional(),
  error_retention: DurationSchema.optional(),
});

export function readRetention(
  input: z.output<typeof RetentionSchema> | number | string | undefined,
  where: string,
): Partial<Retention> {
  if (input === undefined) return {};
  const both = typeof input === "object" ? input : { success_retention: input, error_retention: input };
  return {
    ...(both.success_retention === undefined
      ? {}
      : { successMs: retentionMs(both.success_retention, `${where}/success_retention`) }),
    ...(both.error_retention === undefined
      ? {}
      : { errorMs: retentionMs(both.error_retention, `${where}/error_retention`) }),
  };
}

function retentionMs(input: number | string, pointer: string): number {
  let ms: number;
  try {
    ms = Math.round(durationMs(input, "a retention"));
  } catch (error) {
    throw workflowErrors.invalid((error as Error).message, pointer);
  }
  const { retentionMsMax } = workflowLimits;
  if (ms > retentionMsMax)
    throw workflowErrors.invalid(
      `Expected a retention of at most ${retentionMsMax / 86_400_000} days but received ${JSON.stringify(input)}`,
      pointer,
    );
  return ms;
}
