import { CellError, ObjectRefusal, Refusal } from "../../sandbox/errors.ts";
import type { ScriptError } from "../../sandbox/gateway/error-headers.ts";
import type { Thrown } from "../../sandbox/gateway/exchange.ts";
import { VisitorError } from "../../edge/http/errors.ts";
import { cellErrorMessages } from "../cell-error-messages.ts";
import type { RunContext } from "./run-context.ts";
import type { Runtime } from "./runtime.ts";

/** A dispatch or a service binding names a script that does not exist. */
export class ScriptNotFound extends Refusal {
  constructor() {
    super("Worker not found.");
  }
}

/** The refusals of requests of scripts. Scripts can catch them and see their messages. */
export const refusals = {
  notFound: () => new ScriptNotFound(),
  subrequests: () => new Refusal("Too many subrequests."),
  tooManyInFlight: () => new Refusal("The account has too many subrequests in progress."),
  tree: () => new Refusal("All scripts together made too many subrequests for one request."),
  running: () => new Refusal("Too many scripts run at the same time for one request."),
  depth: () => new Refusal("Too many scripts have called each other."),
  sockets: () => new Refusal(`More than ${socketsMax} sockets of one request are open.`),
  socketOfCustomer: () =>
    new Refusal("connect() is not available to a script whose requests go through an outbound Worker."),
  internal: () => new Refusal("The platform failed to answer. See its log for the reason."),
};

/** Maximum number of open sockets of one run. */
export const socketsMax = 32;

/** Retry-After for a request that was refused because all slots were in use. */
export const retryAfterSeconds = 5;

const exceeded = (what: string, cause: unknown): VisitorError =>
  new VisitorError(503, 1102, "Worker exceeded resource limits", what, { cause });

/**
 * Converts the error of a failed run for the visitor. `uncaught` is a limit that a called script exceeded.
 * Authors see the exception of the script.
 */
export function visitorError(
  error: CellError,
  uncaught: string | undefined,
  isAuthor: boolean,
): VisitorError {
  const { cause } = error;
  switch (error.kind) {
    case "cpu":
      return exceeded("A script of this site exceeded its CPU time limit.", error);
    case "memory":
      return exceeded("A script of this site exceeded its memory limit.", error);
    case "exception":
      return uncaught !== undefined && error.message.includes(uncaught)
        ? exceeded(`A script of this site exceeded a limit: ${uncaught}`, cause)
        : new VisitorError(
            500,
            1101,
            "Worker threw exception",
            "A script of this site threw an exception that it did not catch.",
            { cause, exception: isAuthor ? (cause as Thrown) : undefined },
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
      return new VisitorError(
        503,
        1200,
        "Too many requests for this site",
        "The scripts of this site have too many requests in progress. Try again in a moment.",
        { cause: error, retryAfterSeconds },
      );
    case "unavailable":
      return new VisitorError(
        503,
        1105,
        "Workers temporarily unavailable",
        "This installation cannot run the script at the moment. Try again in a moment.",
        { cause: error, retryAfterSeconds },
      );
  }
}

/** Errors of the platform are only logged: they may contain file names or data of other accounts. */
export function refusalOf(error: unknown, runtime: Runtime, { caller }: RunContext): Refusal {
  if (error instanceof Refusal) return error;
  runtime.logFault(error, caller);
  return refusals.internal();
}

/** The error that a script sees; undefined for an error of the platform, which scripts do not see. */
export function scriptErrorOf(error: unknown): ScriptError | undefined {
  if (error instanceof VisitorError) return { message: `${error.title}: ${error.message}` };
  if (error instanceof ObjectRefusal) return { message: error.message, flags: error.flags };
  if (error instanceof Refusal) return { message: error.message };
  if (!(error instanceof CellError)) return undefined;
  if (error.kind !== "exception") return { message: cellErrorMessages[error.kind] };
  return { message: error.message, name: (error.cause as Thrown).name };
}

/** The error that a script's request throws. */
export function scriptError(error: unknown, runtime: Runtime, context: RunContext): ScriptError {
  if (error instanceof CellError && error.kind !== "exception")
    context.root.limitFault = cellErrorMessages[error.kind];
  return scriptErrorOf(error) ?? { message: refusalOf(error, runtime, context).message };
}
