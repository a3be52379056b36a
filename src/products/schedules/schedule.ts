import { ApiError } from "../../control/api/errors.ts";

/** Runs a script in each minute of a cron expression. */
export interface Schedule {
  accountId: string;
  scriptName: string;
  cron: string;
  /** The last minute that any node has claimed. */
  lastRunOn: number;
  /** Minutes that passed while no node was running. */
  missedRuns: number;
  lastMissedOn: number | null;
  createdOn: number;
  modifiedOn: number;
}

export const schedulesOfScriptMax = 250;

export const scheduleErrors = {
  cron: (cron: string, why: string, position: number) =>
    new ApiError(400, 10100, `Invalid cron expression ${JSON.stringify(cron)}: ${why}`, {
      pointer: `/body/${position}/cron`,
    }),
  twice: (cron: string, position: number) =>
    new ApiError(400, 10101, `The cron expression ${JSON.stringify(cron)} is listed twice`, {
      pointer: `/body/${position}/cron`,
    }),
};
