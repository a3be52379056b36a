import { capability } from "../../capability.ts";
import { storage } from "../../platform/capability.ts";
import { tracing } from "../../platform/tracing/capability.ts";
import { endsWithin } from "../../platform/util/ends-within.ts";
import { runtime } from "../../workers/runtime/capability.ts";
import { scripts } from "../../workers/scripts/capability.ts";
import { scheduleOperations } from "./api.ts";
import { runScheduled } from "./run.ts";
import { CronScheduler } from "./scheduler.ts";
import { Schedules } from "./schedules.ts";
import { declaration } from "./declaration.ts";
import { scheduleErrors } from "./errors.ts";
import { scheduleErrorCodes } from "./api-errors.ts";

/** Runs scripts at given times. */
export const schedules = capability({
  name: "schedules",
  declares: declaration,
  needs: [storage, scripts, runtime, tracing],
  create: (needed) => ({ schedules: new Schedules(needed.storage, needed.scripts) }),
  operations: scheduleOperations,
  errors: [{ title: "Schedules", errors: scheduleErrors, codes: scheduleErrorCodes }],
  load: (services) => services.schedules.load(),
  async run(services) {
    const run = runScheduled(services.scripts, services.runtime, services.tracer);
    const scheduler = new CronScheduler(services.schedules, run, services.logger);
    await scheduler.start();
    return {
      giveBack: () => scheduler.stopClaiming(),
      async stop(deadlineMs) {
        await endsWithin(deadlineMs, scheduler.stop());
      },
    };
  },
});
