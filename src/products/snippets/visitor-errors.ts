import type { CellError, CellErrorKind } from "../../sandbox/errors.ts";
import type { Thrown } from "../../sandbox/gateway/exchange.ts";
import { VisitorError } from "../../edge/http/errors.ts";
import { retryAfterSeconds } from "../../workers/runtime/errors.ts";

/**
 * The reason why a snippet's fetch is refused. The snippet can catch it; otherwise it becomes the visitor's
 * response.
 */
export interface SnippetFault {
  code: number;
  title: string;
  message: string;
}

export const snippetFaults = {
  continuedTwice: {
    code: 1201,
    title: "Snippet passed its request on twice",
    message: "A snippet may pass its request on only once.",
  },
  subrequests: (max: number) => ({
    code: 1202,
    title: "Too many subrequests",
    message: `Too many subrequests: the zone's plan allows ${max} for each run of a snippet.`,
  }),
} satisfies Record<string, SnippetFault | ((max: number) => SnippetFault)>;

const byKind: Record<Exclude<CellErrorKind, "exception">, { status: number; fault: SnippetFault }> = {
  cpu: {
    status: 500,
    fault: {
      code: 1203,
      title: "Snippet exceeded its CPU time",
      message: "A snippet of this site used more CPU time than allowed.",
    },
  },
  memory: {
    status: 500,
    fault: {
      code: 1204,
      title: "Snippet exceeded its memory",
      message: "A snippet of this site used more memory than allowed.",
    },
  },
  crashed: {
    status: 500,
    fault: {
      code: 1206,
      title: "Snippet ended unexpectedly",
      message: "The process that ran a snippet of this site ended before the snippet responded.",
    },
  },
  overloaded: {
    status: 503,
    fault: {
      code: 1205,
      title: "Snippets are busy",
      message: "Too many requests are waiting for this site's snippets. Try again in a moment.",
    },
  },
  unavailable: {
    status: 503,
    fault: {
      code: 1205,
      title: "Snippets cannot run",
      message: "This installation cannot run snippets at the moment. Its log has the reason.",
    },
  },
};

const thrown: SnippetFault = {
  code: 1206,
  title: "Snippet threw an exception",
  message: "A snippet of this site threw an uncaught exception.",
};

/** The error page for a failed run. `refusal` is the run's last refused fetch. Authors see the exception. */
export function snippetFault(
  error: CellError,
  refusal: SnippetFault | undefined,
  isAuthor: boolean,
): VisitorError {
  if (error.kind === "exception") {
    const fault = refusal !== undefined && error.message.includes(refusal.message) ? refusal : thrown;
    return new VisitorError(500, fault.code, fault.title, fault.message, {
      cause: error.cause,
      exception: isAuthor ? (error.cause as Thrown) : undefined,
    });
  }
  const { status, fault } = byKind[error.kind];
  const more = status === 503 ? { cause: error, retryAfterSeconds } : { cause: error };
  return new VisitorError(status, fault.code, fault.title, fault.message, more);
}
