import { ApiError } from "../api/errors.ts";

/** A minute of its timetable after another, an account's script is run. */
export interface Schedule {
  accountId: string;
  scriptName: string;
  cron: string;
  /** The last minute that was dealt with, on any node: what it says is claimed. */
  lastRunOn: number;
  /** Minutes that passed while no node was up. */
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
    new ApiError(400, 10101, `The cron expression ${JSON.stringify(cron)} is given twice`, {
      pointer: `/body/${position}/cron`,
    }),
};
