export type Status =
  | "queued"
  | "running"
  | "waiting"
  | "waitingForPause"
  | "paused"
  | "complete"
  | "errored"
  | "terminated"
  | "rollingBack";

export const statuses: readonly Status[] = [
  "queued",
  "running",
  "waiting",
  "waitingForPause",
  "paused",
  "complete",
  "errored",
  "terminated",
];

export interface Workflow {
  id: string;
  name: string;
  class_name: string;
  script_name: string;
  triggered_on: string | null;
  instances: Record<Status, number>;
  schedules: { cron: string; next_instance?: string }[];
}

export interface Instance {
  id: string;
  status: Status;
  created_on: string;
  started_on: string | null;
  ended_on: string | null;
  trigger_source: string;
}

export interface StepError {
  name: string;
  message: string;
}

export interface Attempt {
  start: string;
  end: string | null;
  success: boolean | null;
  error: StepError | null;
}

/** A step of an instance, as the API shows it. */
export type Step =
  | {
      type: "step" | "rollback";
      name: string;
      start: string;
      end: string | null;
      success: boolean | null;
      output: string | null;
      error: StepError | null;
      config: object;
      attempts: Attempt[];
    }
  | { type: "sleep"; name: string; start: string; end: string; finished: boolean; error: null }
  | {
      type: "waitForEvent";
      name: string;
      start: string;
      end: string;
      finished: boolean;
      event_type: string;
      output?: string;
      error: StepError | null;
    }
  | { type: "termination"; trigger: { source: string } };

/** A step that has a name and a time. */
export type TimedStep = Exclude<Step, { type: "termination" }>;

export interface InstanceDetails {
  status: Status;
  params: unknown;
  trigger: { source: string };
  versionId: string;
  queued: string;
  start: string | null;
  end: string | null;
  error: StepError | null;
  output: unknown;
  warnings: string[];
  steps: Step[];
}

export const isFinal = (status: Status): boolean => ["complete", "errored", "terminated"].includes(status);

export type Change = "pause" | "resume" | "terminate" | "restart";

/** The reason why an instance of this status does not allow the change, as in the server's state table. */
export function impossible(change: Change, status: Status): string | undefined {
  if (change === "restart") return undefined;
  if (isFinal(status)) return `it is ${status}`;
  if (change === "pause" && status === "paused") return "it is paused already";
  if (change === "pause" && status === "waitingForPause") return "it pauses after its current steps";
  if (change === "resume" && status !== "paused" && status !== "waitingForPause") return "it is not paused";
  return undefined;
}

/** The name that the code gives a step, and its count: "charge-2" is the second "charge". */
export function placeOf({ name, type }: TimedStep): { name: string; count: number; type: string } {
  const [, base = name, count = "1"] = /^(.*)-(\d+)$/s.exec(name) ?? [];
  return { name: base, count: Number(count), type: type === "step" ? "do" : type };
}
