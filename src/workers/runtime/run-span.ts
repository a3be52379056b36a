import { CellError } from "../../sandbox/errors.ts";
import type { CellRequest } from "../../sandbox/gateway/exchange.ts";
import { errorName, inChildSpan, type Span } from "../../platform/tracing/spans/span.ts";
import { withTrace } from "../../platform/tracing/spans/trace-headers.ts";
import type { Caller } from "../binding.ts";
import type { RunContext } from "./run-context.ts";

/** Begins the span of a run as a child of its caller's, and stores it in the context, which must have a span. */
export function beginRun(context: RunContext, what: "script" | "object"): Span {
  const span = context.span!.child(`${what} ${context.caller.scriptName}`);
  context.span = span;
  return nameRun(span, context);
}

/** Adds the script, its version and its account to a span. */
export function nameRun(span: Span, { caller, loaded }: RunContext): Span {
  return span
    .set("selvedge.script", caller.scriptName)
    .set("selvedge.script_version", caller.versionId)
    .set("selvedge.account", caller.accountId)
    .set("selvedge.dispatch_namespace", loaded.script.namespace);
}

/** Runs a script within its own span. The script sees the trace in its headers. */
export async function runTraced(
  context: RunContext,
  what: "script" | "object",
  request: CellRequest,
  run: (request: CellRequest) => Promise<void>,
): Promise<void> {
  const span = beginRun(context, what);
  try {
    await run({ ...request, headers: withTrace(request.headers, span) });
  } catch (error) {
    if (span.isSampled) span.fail(error instanceof CellError ? error.kind : errorName(error));
    throw error;
  } finally {
    span.end();
  }
}

/** Gives a called script the span of its caller as its parent. */
export const below = <C extends RunContext | undefined>(context: C, { span }: RunContext): C => {
  if (context !== undefined) context.span = span;
  return context;
};

/** Runs the answer to a call of a binding within a span. The names of methods are those of HTTP. */
export const callTraced = async (
  { span: parent, caller }: RunContext,
  type: string,
  method: string | undefined,
  call: (span: Span | undefined, caller: Caller) => Promise<void>,
): Promise<void> => {
  const name = parent === undefined ? "" : `binding ${type}.${(method ?? "get").toLowerCase()}`;
  await inChildSpan(parent, name, async (span) => call(span, caller), "client");
};

/** Runs the answer to a fetch with `cf.image` within a span. */
export const transformTraced = async ({ span }: RunContext, transform: () => Promise<void>): Promise<void> =>
  inChildSpan(span, "image.transform", transform);
