import { readConfig, record, type ReadConfig, type StepConfig } from "./step-config.ts";

/** What an attempt to undo a step is given. */
export interface Undo {
  ctx: { step: { name: string; count: number }; attempt: number; config: StepConfig };
  error: Error;
  output: unknown;
  stepName: string;
}

/** A step that was begun and can be undone. */
export interface Undoable {
  /** Of the step. */
  key: string;
  config: StepConfig;
  handler: (undo: Undo) => unknown;
  own: ReadConfig;
  /** The step's result, once there is one. */
  output: unknown;
}

/** Checks what the code gave to step.do for undoing it. */
export function readRollback(
  given: unknown,
  step: string,
  retryDelayMs: number,
): Pick<Undoable, "handler" | "own"> | undefined {
  if (given === undefined) return undefined;
  const { rollback, rollbackConfig } = record(given, step, "the rollback options", [
    "rollback",
    "rollbackConfig",
  ]);
  if (typeof rollback !== "function")
    throw new TypeError(`Step "${step}": expected a function for rollback but received ${typeof rollback}`);
  return {
    handler: rollback as Undoable["handler"],
    own: readConfig(rollbackConfig, step, retryDelayMs),
  };
}
