import type { Ending, Signal, StartMessage } from "../worker/messages.ts";

/** The code of an instance, fixed when the instance is created. */
export interface WorkflowCode {
  accountId: string;
  scriptName: string;
  scriptVersion: string;
  className: string;
}

/** `alone` is for instances under which cells have died: a dedicated cell keeps them from harming others. */
export type Placement = "shared" | "alone";

/** An attempt of a step that has ended. */
export interface EndedAttempt {
  /** The key of the step. */
  name: string;
  attempt: number;
  /** Its start by the isolate's clock, in milliseconds. The isolate may send any number. */
  sinceMs: number;
  hasFailed: boolean;
}

/** Runs invocations. Each has a number that is never reused; messages with any other number are dropped. */
export interface InvocationRunner {
  run(invocation: number, code: WorkflowCode, start: StartMessage, manner: Placement): void;
  /** Loads the code of an invocation ahead of its instance. No code of the workflow runs until `begin`. */
  standBy(invocation: number, code: WorkflowCode): void;
  /** False when the cell of the standby invocation has died. */
  standsBy(invocation: number): boolean;
  /** Starts a standby invocation. False when that is impossible; the invocation then never starts. */
  begin(invocation: number, start: StartMessage): boolean;
  answer(invocation: number, call: number, answer: string): void;
  signal(invocation: number, signal: Signal): void;
  /** Called when an attempt of a step has ended, before that is durable. For traces. */
  attempted?(invocation: number, attempt: EndedAttempt): void;
}

/** Receives the messages and the end of invocations. */
export interface InvocationListener {
  /** Resolves once no part of the message is kept in memory, except for pending waits. */
  call(invocation: number, call: number, message: string): Promise<void> | undefined;
  note(invocation: number, message: string): void;
  ended(invocation: number, ending: Ending): void;
  /** Called when the cell has died. `mayBeCulprit` is true if this invocation may be the cause. */
  lost(invocation: number, mayBeCulprit: boolean): void;
}
