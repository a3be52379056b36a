import type { CellError, CellErrorKind } from "../cells/errors.ts";
import { VisitorError } from "../edge/errors.ts";

/** A reason why a snippet's fetch is refused. The snippet can catch it; what it does not catch is the visitor's answer. */
export interface SnippetFault {
  code: number;
  title: string;
  message: string;
}

export const snippetFaults = {
  continuedTwice: {
    code: 1201,
    title: "Snippet went on to the origin twice",
    message: "A snippet may pass its request on once.",
  },
  subrequests: (max: number) => ({
    code: 1202,
    title: "Too many subrequests",
    message: `Too many subrequests: the zone's plan allows ${max} in one run of a snippet.`,
  }),
} satisfies Record<string, SnippetFault | ((max: number) => SnippetFault)>;

const byKind: Record<Exclude<CellErrorKind, "exception">, { status: number; fault: SnippetFault }> = {
  cpu: {
    status: 500,
    fault: {
      code: 1203,
      title: "Snippet exceeded its CPU time",
      message: "A snippet of this site used more CPU time than it may.",
    },
  },
  memory: {
    status: 500,
    fault: {
      code: 1204,
      title: "Snippet exceeded its memory",
      message: "A snippet of this site used more memory than it may.",
    },
  },
  crashed: {
    status: 500,
    fault: {
      code: 1206,
      title: "Snippet ended unexpectedly",
      message: "The process that ran a snippet of this site ended before it answered.",
    },
  },
  overloaded: {
    status: 503,
    fault: {
      code: 1205,
      title: "Snippets are busy",
      message: "Too many requests wait for this site's snippets. Try again in a moment.",
    },
  },
  unavailable: {
    status: 503,
    fault: {
      code: 1205,
      title: "Snippets cannot be run",
      message: "This installation cannot run snippets at the moment. Its log says why.",
    },
  },
};

const thrown: SnippetFault = {
  code: 1206,
  title: "Snippet threw an exception",
  message: "A snippet of this site threw an exception that it did not catch.",
};

/** The visitor's view of a run that failed; `refusal` is the last fetch that was refused in it. */
export function snippetFault(error: CellError, refusal: SnippetFault | undefined): VisitorError {
  if (error.kind === "exception") {
    const fault = refusal !== undefined && error.message.includes(refusal.message) ? refusal : thrown;
    return new VisitorError(500, fault.code, fault.title, fault.message, { cause: error.cause });
  }
  const { status, fault } = byKind[error.kind];
  return new VisitorError(status, fault.code, fault.title, fault.message, { cause: error });
}
