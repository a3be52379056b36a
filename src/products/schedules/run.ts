import { inSpan } from "../../platform/tracing/spans/span.ts";
import type { Tracer } from "../../platform/tracing/spans/tracer.ts";
import type { Runtime } from "../../workers/runtime/runtime.ts";
import type { Scripts } from "../../workers/scripts/scripts.ts";
import type { RunScheduled } from "./scheduler.ts";

/** Runs the `scheduled` handler of the live version. */
export const runScheduled =
  (scripts: Scripts, runtime: Runtime, tracer?: Tracer): RunScheduled =>
  async ({ accountId, scriptName, cron, scheduledTimeMs }) => {
    const owner = { accountId };
    const live = scripts.live(owner, scriptName);
    if (live === undefined) throw new Error("the script has no deployed version");
    const event = JSON.stringify({ cron, scheduledTime: scheduledTimeMs });
    await inSpan(tracer?.begin(`scheduled ${scriptName}`, "internal"), async (span) =>
      runtime.invoke(owner, live, "scheduled", event, undefined, span),
    );
  };
