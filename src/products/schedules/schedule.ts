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
