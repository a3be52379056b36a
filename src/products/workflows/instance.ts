import type { Status } from "./transitions.ts";

export type TriggerSource = "api" | "binding" | "cron" | "event" | "unknown";

/** The columns of an instance that never change. */
export interface InstanceHead {
  rid: number;
  shard: number;
  accountId: string;
  workflowRid: number;
  id: string;
  trigger: TriggerSource;
  /** The `traceparent` of the span that created it, if its trace is kept. */
  creatorTrace: string | null;
  /** Text of codec.ts. */
  params: string;
  successRetentionMs: number;
  errorRetentionMs: number;
}

/**
 * The columns of an instance that change. They are always written together, so the last write of a flush
 * wins.
 */
export interface InstanceState {
  status: Status;
  run: number;
  versionRid: number;
  createdOn: number;
  modifiedOn: number;
  startedOn: number | null;
  endedOn: number | null;
  /** When a pause stopped the instance's delays; epoch milliseconds. */
  pausedOn: number | null;
  /** When a waiting instance continues by itself; epoch milliseconds. */
  wakeOn: number | null;
  expiresOn: number | null;
  /** Cells that died under the instance since its last result in the journal. */
  crashes: number;
  output: string | null;
  /** JSON of an InstanceError. */
  error: string | null;
}

/** The schedule that created an instance, and the minute it was for. */
export interface CronSchedule {
  cron: string;
  scheduledTime: number;
}
export const scheduledId = ({ cron, scheduledTime }: CronSchedule): string => `${cron}-${scheduledTime}`;
/** Reads the schedule from the id of an instance (see `scheduledId`); undefined for other triggers. */
export function scheduleOf({ trigger, id }: Pick<InstanceHead, "trigger" | "id">): CronSchedule | undefined {
  if (trigger !== "cron") return undefined;
  const at = id.lastIndexOf("-");
  return { cron: id.slice(0, at), scheduledTime: Number(id.slice(at + 1)) };
}

/** An instance of a workflow. Times are epoch milliseconds; results are texts of codec.ts. */
export interface InstanceRow extends InstanceHead, InstanceState {}
/** An instance before the store assigns its row id. */
export type NewInstance = Omit<InstanceRow, "rid">;

/** An event that no wait has taken yet. `number` grows in order of arrival. */
export interface EventRow {
  rid: number;
  number: number;
  type: string;
  payload: string;
  at: number;
}

/** The error of a step or of a rollback, as stored. */
export interface StepError {
  name: string;
  message: string;
  stack?: string;
}

/** The error of a failed instance, as stored. */
export interface InstanceError extends StepError {
  /** The outcome of the rollback, when there was one. */
  rollback?: { outcome: "complete" | "failed"; error: StepError | null };
}
