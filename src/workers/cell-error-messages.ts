import type { CellErrorKind } from "../sandbox/errors.ts";

/** Errors in a script for a call of another script that ended without an answer. */
export const cellErrorMessages: Record<Exclude<CellErrorKind, "exception">, string> = {
  cpu: "Worker exceeded CPU time limit.",
  memory: "Worker exceeded memory limit.",
  crashed: "Worker ended unexpectedly.",
  overloaded: "Worker has too many requests to handle.",
  unavailable: "Workers cannot be run at the moment.",
};
