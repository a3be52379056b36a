import type { Cells } from "../../sandbox/cells.ts";
import type { CellRequest } from "../../sandbox/gateway/exchange.ts";
import type { Kind } from "../../sandbox/limits/admission.ts";
import type { RunTrace } from "../tail/run-trace.ts";
import type { Run } from "./run.ts";
import type { Span } from "../../platform/tracing/spans/span.ts";
import type { Caller } from "../binding.ts";
import type { OutboundScript } from "./run-parts.ts";
import type { RunRoot } from "./run-root.ts";
import type { LoadedScript } from "./script-cache.ts";

export interface RunLimits {
  cpuMs: number;
  subRequests: number;
}

/** A version of a script, and the data that a run of it has from its caller. */
export interface RunContext {
  loaded: LoadedScript;
  caller: Caller;
  limits: RunLimits;
  outbound: OutboundScript | undefined;
  root: RunRoot;
  /** Number of scripts that have called each other up to this run. */
  depth: number;
  /** The span of the caller; after the start of the run, the run's own. Undefined without traces. */
  span: Span | undefined;
}

/** The script that a request of a run goes to. */
export interface CallTarget {
  context: RunContext;
  entrypoint: string | undefined;
  /** Added to its `env` for this request. */
  params: Readonly<Record<string, unknown>> | undefined;
  /** Whether the script sees `request.cf` of the visitor. */
  seesCf: boolean;
}

/** The context of a run at its start. Its caller's span is the visitor's, unless the caller sets its own. */
export const contextOf = (
  loaded: LoadedScript,
  root: RunRoot,
  depth = 0,
  limits = loaded.limits,
  outbound?: OutboundScript,
): RunContext => ({
  loaded,
  caller: loaded.caller,
  limits,
  outbound,
  root,
  depth,
  span: root.edgeRequest?.span,
});

/** The same context with a span that may change. */
export const spanFrom = (context: RunContext, traced: { span: Span | undefined } | undefined): RunContext =>
  traced === undefined
    ? context
    : {
        ...context,
        get span() {
          return traced.span;
        },
      };

/** The common data of the attempts to run a script for one request. */
export interface Runs {
  readonly context: RunContext;
  readonly request: CellRequest;
  readonly kind: Kind;
  readonly cells: Cells;
  /** Undefined without a live log of the script. */
  readonly trace: RunTrace | undefined;
  /** The run of the latest attempt. */
  last: Run | undefined;
}
