/*
 * Messages between an invocation and the engine. The engine's messages are JSON. An invocation's are a line
 * of JSON, followed by the text of a value: results can be long, and are not encoded into JSON once more.
 */

/** Sent by the invocation. Each call is answered once its effect is durable or its time has come. */
export type CallMessage =
  | [
      "done",
      key: string,
      attempt: number,
      elapsedMs: number,
      value: string,
      config: string | null,
      /** The start of the attempt by the isolate's clock, in milliseconds. For traces only. */
      sinceMs: number,
    ]
  /** Without a delay the step has failed. */
  | [
      "failed",
      key: string,
      attempt: number,
      elapsedMs: number,
      error: ErrorMessage,
      delayMs: number | null,
      config: string | null,
      sinceMs: number,
    ]
  /** Answered when the next attempt may start. */
  | ["retry", key: string]
  | ["sleep", key: string, forMs: number | null, untilMs: number | null]
  | ["wait", key: string, eventType: string, timeoutMs: number]
  /** Requests a result that was too large for the start message. */
  | ["get", key: string];

/** Sent without an answer: an attempt has been running for a while. */
export type NoteMessage = ["start", key: string, attempt: number, elapsedMs: number, config: string | null];

export type ErrorMessage = { name: string; message: string; stack?: string };
/** Characters kept of an error. */
export const errorLengths = { name: 256, message: 8 * 1024, stack: 4096 };
/** The outcome of the rollback of a failed workflow. */
export type Rollback = { outcome: "complete" | "failed"; error: ErrorMessage | null };
/** The answer to a wait. */
export type WaitAnswer =
  | ["event", payload: string, type: string, at: number]
  | ["timeout", error: ErrorMessage];

/** The journal at the start of an invocation. */
export type HistoryMessage =
  | [key: string, "value", text: string | null]
  | [key: string, "error", error: ErrorMessage]
  | [key: string, "event", payload: string | null, type: string, at: number]
  | [key: string, "open", attempt: number, failures: number, isToWait: boolean, config: string | null];

/** The engine's message that starts an invocation. `payload` is a text of codec.ts. */
export interface StartMessage {
  payload: string;
  timestamp: number;
  instanceId: string;
  workflowName: string;
  schedule?: { cron: string; scheduledTime: number };
  history: HistoryMessage[];
  limits: { lingerMs: number; valueBytesMax: number; retryDelayMs: number };
  /** The `traceparent` of the span that created the instance. It stays in the server. */
  creatorTrace?: string;
  /** Whether the script has tail consumers. */
  isTraced: boolean;
  /** Only with the test kit. */
  mocks?: StepMocks;
}

/** Mocks of the test kit. Steps are named as in the journal, with their count: "charge-1". */
export interface StepMocks {
  /** Results and errors in place of the code of steps; for the attempts up to `times`, or for all. */
  steps: ({ step: string; times?: number | undefined } & ({ value: string } | { error: ErrorMessage }))[];
  /** Sleeps and delays of retries that take no time. */
  sleeps: "all" | readonly string[];
  retryDelays: "all" | readonly string[];
  /** Waits for events that time out at once. */
  eventTimeouts: readonly string[];
  /** No step that the journal lacks is run. */
  isReplay?: boolean;
}

/** The end of an invocation. `unasked` lists keys of the journal that the code did not reach. */
export type Ending =
  | { end: "return"; value: string; unasked: string[] }
  | { end: "throw"; error: ErrorMessage; rollback?: Rollback | undefined; unasked: string[] }
  /** No step runs, and `waiting` calls are open. */
  | { end: "suspend"; waiting: number; unasked: string[] }
  /** No step runs, and the engine demanded a pause. */
  | { end: "held" };

/** The error of an instance whose output exceeds `valueBytesMax`. */
export const outputTooLarge: ErrorMessage = {
  name: "WorkflowInternalError",
  message: "The workflow's output is too large. Maximum allowed size is 1MiB.",
};

/** The answer to an attempt's outcome when no other step may start. */
export const pauseReply = "hold";

// Taken before a script's code runs, which may replace globals.
const { stringify } = JSON;

/** The text of a call: a line of JSON, followed by the result of a step that is done. */
export function callText(message: CallMessage): string {
  if (message[0] !== "done") return stringify(message);
  const [kind, key, attempt, elapsedMs, value, config, sinceMs] = message;
  return `${stringify([kind, key, attempt, elapsedMs, config, sinceMs])}\n${value}`;
}

export const noteText = (message: NoteMessage): string => stringify(message);

/** The text of an ending: a line of JSON, followed by the result of a workflow that returned. */
export function endingText(ending: Ending): string {
  if (ending.end !== "return") return stringify(ending);
  const { end, value, unasked } = ending;
  return `${stringify({ end, unasked })}\n${value}`;
}

/** Signals of the engine to a running invocation. */
export type Signal = "hold" | "release" | "abort";
