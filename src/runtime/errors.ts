import type { CellError, CellErrorKind } from "../cells/errors.ts";
import { VisitorError } from "../edge/errors.ts";

/** Why a script does not get what it asked for, in words that are for it. Of any other error it is not told. */
export class Refusal extends Error {}

export class ScriptNotFound extends Refusal {
  constructor() {
    super("Worker not found.");
  }
}

/** What a script is told of another one that it called and that ended without an answer. */
export const messages: Record<Exclude<CellErrorKind, "exception">, string> = {
  cpu: "Worker exceeded CPU time limit.",
  memory: "Worker exceeded memory limit.",
  crashed: "Worker ended unexpectedly.",
  overloaded: "Worker has too many requests to handle.",
  unavailable: "Workers cannot be run at the moment.",
};

export const refusals = {
  notFound: () => new ScriptNotFound(),
  subrequests: () => new Refusal("Too many subrequests."),
  depth: () => new Refusal("Too many scripts have called each other."),
  internal: () => new Refusal("The platform failed to answer. Its log says why."),
};

const exceeded = (what: string, cause: unknown): VisitorError =>
  new VisitorError(503, 1102, "Worker exceeded resource limits", what, { cause });

/** A visitor's view of a run that failed. `uncaught` is a limit that a script which it called went over. */
export function visitorError(error: CellError, uncaught: string | undefined): VisitorError {
  const { cause } = error;
  switch (error.kind) {
    case "cpu":
      return exceeded("A script of this site used more CPU time than it may.", error);
    case "memory":
      return exceeded("A script of this site used more memory than it may.", error);
    case "exception":
      return uncaught !== undefined && error.message.includes(uncaught)
        ? exceeded(`A script of this site went over a limit: ${uncaught}`, cause)
        : new VisitorError(
            500,
            1101,
            "Worker threw exception",
            "A script of this site threw an exception that it did not catch.",
            { cause },
          );
    case "crashed":
      return new VisitorError(
        500,
        1101,
        "Worker ended unexpectedly",
        "The process that ran a script of this site ended before it answered.",
        { cause: error },
      );
    case "overloaded":
    case "unavailable":
      return new VisitorError(
        503,
        1105,
        "Workers temporarily unavailable",
        "This installation cannot run the script at the moment. Try again in a moment.",
        { cause: error },
      );
  }
}
