import type { Runtime } from "../runtime/runtime.ts";
import type { Scripts } from "../scripts/scripts.ts";
import type { RunScheduled } from "./scheduler.ts";

/** Runs the `scheduled` handler of the version that is live now. */
export const runScheduled =
  (scripts: Scripts, runtime: Runtime): RunScheduled =>
  async ({ accountId, scriptName, cron, scheduledTimeMs }) => {
    const owner = { accountId };
    const live = scripts.live(owner, scriptName);
    if (live === undefined) throw new Error("the script has no version that runs");
    const event = JSON.stringify({ cron, scheduledTime: scheduledTimeMs });
    await runtime.invoke(owner, live, "scheduled", event);
  };
