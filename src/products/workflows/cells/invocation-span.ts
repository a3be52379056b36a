import { clock } from "../../../platform/timers/clock.ts";
import type { Span } from "../../../platform/tracing/spans/span.ts";
import type { Tracer } from "../../../platform/tracing/spans/tracer.ts";
import { readTraceContext } from "../../../platform/tracing/spans/trace-context.ts";
import type { Ending, StartMessage } from "../worker/messages.ts";
import type { EndedAttempt, WorkflowCode } from "./invocation-runner.ts";

/** Isolates measure in whole milliseconds. A step must not seem to begin after its first request. */
const clockStepMs = 1;

/**
 * The span of an invocation, from its start until it ends or waits for longer. Requests and steps are below it. Undefined
 * before the start, and without traces.
 */
export class InvocationSpan {
  span: Span | undefined;

  begin(tracer: Tracer | undefined, { accountId, scriptName }: WorkflowCode, start: StartMessage): void {
    this.span = tracer
      ?.begin(`workflow ${start.workflowName}`, "internal", {
        // Untrusted, because it is a trace of its own with a link: an instance may run for months.
        context: readTraceContext(start.creatorTrace, undefined),
        isTrusted: false,
      })
      .set("selvedge.workflow_instance", start.instanceId)
      .set("selvedge.account", accountId)
      .set("selvedge.script", scriptName);
  }

  /** Records an attempt by the times in its message, because the message may have arrived late. */
  attempted({ name, attempt, sinceMs, hasFailed }: EndedAttempt): void {
    if (this.span?.isSampled !== true) return;
    const ageMs = this.span.ageMs;
    const step = this.span
      .child(`step ${name.slice(0, 100)}`)
      .began(Math.min(Math.max(clock.now() - sinceMs + clockStepMs, 0), ageMs))
      .set("selvedge.attempt", attempt);
    if (hasFailed) step.fail("exception");
    step.end();
  }

  /** Ends the span. Without an ending, the cell has died. */
  end(ending: Ending | undefined): void {
    if (ending === undefined) this.span?.fail("lost");
    else if (ending.end === "throw") this.span?.fail("exception");
    else this.span?.set("selvedge.ending", ending.end);
    this.span?.end();
  }
}
