import type { Status } from "./transitions.ts";

export type TriggerSource = "api" | "binding" | "cron" | "event" | "unknown";

/** What never changes about an instance. */
export interface InstanceHead {
  rid: number;
  shard: number;
  accountId: string;
  workflowRid: number;
  id: string;
  trigger: TriggerSource;
  /** Text of codec.ts. */
  params: string;
  successRetentionMs: number;
  errorRetentionMs: number;
}

/** What moves; always written as a whole, so that the last write of a flush is the truth. */
export interface InstanceState {
  status: Status;
  run: number;
  versionRid: number;
  createdOn: number;
  modifiedOn: number;
  startedOn: number | null;
  endedOn: number | null;
  /** When the clocks stopped. */
  pausedOn: number | null;
  /** When a waiting instance goes on by itself. */
  wakeOn: number | null;
  expiresOn: number | null;
  /** Cells that died under it since it last got a result into its journal. */
  crashes: number;
  output: string | null;
  /** JSON of an InstanceError. */
  error: string | null;
}

/** What made an instance by itself, and for which minute. */
export interface CronSchedule {
  cron: string;
  scheduledTime: number;
}
export const scheduledId = ({ cron, scheduledTime }: CronSchedule): string => `${cron}-${scheduledTime}`;
export function scheduleOf({ trigger, id }: Pick<InstanceHead, "trigger" | "id">): CronSchedule | undefined {
  if (trigger !== "cron") return undefined;
  const at = id.lastIndexOf("-");
  return { cron: id.slice(0, at), scheduledTime: Number(id.slice(at + 1)) };
}

export interface InstanceRow extends InstanceHead, InstanceState {}
export type NewInstance = Omit<InstanceRow, "rid">;

/** An event that no wait has taken yet. `number` grows with arrival. */
export interface EventRow {
  rid: number;
  number: number;
  type: string;
  payload: string;
  at: number;
}

export interface StepError {
  name: string;
  message: string;
  stack?: string;
}

export interface InstanceError extends StepError {
  /** What became of undoing its steps, where there was something to undo. */
  rollback?: { outcome: "complete" | "failed"; error: StepError | null };
}
