import type { CellFault } from "../../../sandbox/errors.ts";
import type { RunTrace } from "../../../workers/tail/run-trace.ts";
import type { WorkflowCode } from "./invocation-runner.ts";
import type { Prepared } from "./workflow-cells.ts";
import type { Ending } from "../worker/messages.ts";

/** Starts the trace of an invocation; undefined when the script has no tail consumers. */
export const traceOf = (prepared: Prepared, { className }: WorkflowCode): RunTrace | undefined =>
  prepared.trace(className, { rpcMethod: "run" });

/** Ends a trace with the ending of its invocation. Without an ending, the cell has died. */
export function endTrace(
  trace: RunTrace | undefined,
  ending: Ending | undefined,
  fault: CellFault | undefined,
): void {
  if (ending?.end === "throw") trace?.end("exception", ending.error, false);
  else if (ending !== undefined) trace?.end("ok", undefined, false);
  else trace?.end(fault?.mayBeCulprit === true ? outcomes[fault.kind] : "canceled", undefined, true);
}
const outcomes = {
  cpu: "exceededCpu",
  memory: "exceededMemory",
  crashed: "unknown",
  killed: "unknown",
  ended: "unknown",
} as const;
