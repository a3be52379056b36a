import { capability } from "../../capability.ts";
import { storage } from "../../platform/capability.ts";
import { clock } from "../../platform/timers/clock.ts";
import { tracing } from "../../platform/tracing/capability.ts";
import { endsWithin } from "../../platform/util/ends-within.ts";
import { runtime } from "../../workers/runtime/capability.ts";
import { scripts } from "../../workers/scripts/capability.ts";
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
  create(needed) {
    const created = new Schedules(needed.storage, needed.scripts);
    const run = runScheduled(needed.scripts, needed.runtime, needed.tracer);
    return { schedules: created, cronScheduler: new CronScheduler(created, run, needed.logger) };
  },
  operations: async () => (await import("./api.ts")).scheduleOperations,
  errors: [{ title: "Schedules", errors: scheduleErrors, codes: scheduleErrorCodes }],
  load: (services) => services.schedules.load(),
  due: ({ schedules: planned, cronScheduler }) => ({
    next: async () => planned.nextOn,
    async run() {
      const started = await cronScheduler.tick(clock.now());
      return started.map(({ scriptName, cron, scheduledTimeMs }) => ({
        script: scriptName,
        cron,
        scheduledTime: new Date(scheduledTimeMs).toISOString(),
      }));
    },
    inFlight: () => cronScheduler.runningCount,
    scheduled: (untilMs) => planned.runsBetween(clock.now(), untilMs),
  }),
  async run({ cronScheduler: scheduler }) {
    await scheduler.start();
    return {
      giveBack: () => scheduler.stopClaiming(),
      async stop(deadlineMs) {
        await endsWithin(deadlineMs, scheduler.stop());
      },
    };
  },
});
