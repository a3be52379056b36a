/** What a segment (one invocation of `run`, from the journal on) and the engine say to each other. All of it is JSON. */

/** Sent by the segment, each answered when what it asks for is durable, or due. */
export type CallMessage =
  | ["done", key: string, attempt: number, elapsedMs: number, value: string, config: string | null]
  /** Without a delay there is no next attempt, and the step has failed. */
  | [
      "failed",
      key: string,
      attempt: number,
      elapsedMs: number,
      error: ErrorMessage,
      delayMs: number | null,
      config: string | null,
    ]
  /** Answered when the next attempt may begin. */
  | ["retry", key: string]
  | ["sleep", key: string, forMs: number | null, untilMs: number | null]
  | ["wait", key: string, eventType: string, timeoutMs: number]
  /** A result that was too large to be sent with the others. */
  | ["get", key: string];

/** Sent without an answer: an attempt has been running for a while. */
export type NoteMessage = ["start", key: string, attempt: number, elapsedMs: number, config: string | null];

export type ErrorMessage = { name: string; message: string; stack?: string };
/** What became of undoing the steps of a workflow that has failed. */
export type Rollback = { outcome: "complete" | "failed"; error: ErrorMessage | null };
/** The answer to a wait. */
export type WaitAnswer =
  | ["event", payload: string, type: string, at: number]
  | ["timeout", error: ErrorMessage];

/** What the journal holds when a segment begins. */
export type HistoryMessage =
  | [key: string, "value", text: string | null]
  | [key: string, "error", error: ErrorMessage]
  | [key: string, "event", payload: string | null, type: string, at: number]
  | [key: string, "open", attempt: number, failures: number, isToWait: boolean, config: string | null];

export interface StartMessage {
  payload: string;
  timestamp: number;
  instanceId: string;
  workflowName: string;
  schedule?: { cron: string; scheduledTime: number };
  history: HistoryMessage[];
  limits: { lingerMs: number; valueBytesMax: number; retryDelayMs: number };
  /** Whether somebody watches the script's runs. */
  isTraced: boolean;
}

/** How a segment ended. `unasked` are steps of the journal that the code did not come to again. */
export type Ending =
  | { end: "return"; value: string; unasked: string[] }
  | { end: "throw"; error: ErrorMessage; rollback?: Rollback | undefined; unasked: string[] }
  /** Nothing runs, and `waiting` calls are not answered yet. */
  | { end: "suspend"; waiting: number; unasked: string[] }
  /** Nothing runs, as a pause demanded. */
  | { end: "held" };

/** The answer to an attempt's outcome when no other step is to begin. */
export const holdAnswer = "hold";

/** Told to a segment from outside. */
export type Signal = "hold" | "release" | "abort";
