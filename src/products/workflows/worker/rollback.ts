import { readConfig, record, type ReadConfig, type StepConfig } from "./step-config.ts";

/** The arguments of a rollback handler. */
export interface Undo {
  ctx: { step: { name: string; count: number }; attempt: number; config: StepConfig };
  error: Error;
  output: unknown;
  stepName: string;
}

/** A started step with a rollback handler. */
export interface Undoable {
  /** Key of the step. */
  key: string;
  config: StepConfig;
  handler: (undo: Undo) => unknown;
  own: ReadConfig;
  /** The step's result; undefined until it has one. */
  output: unknown;
}

/** Validates the rollback options of step.do. */
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
