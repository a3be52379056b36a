import { defineErrors } from "../../platform/domain-error.ts";

export const scheduleErrors = defineErrors("schedules", {
  cron: (cron: string, why: string, position: number) => ({
    message: `Invalid cron expression ${JSON.stringify(cron)}: ${why}`,
    pointer: `/body/${position}/cron`,
  }),
  twice: (cron: string, position: number) => ({
    message: `The cron expression ${JSON.stringify(cron)} is listed twice`,
    pointer: `/body/${position}/cron`,
  }),
});
