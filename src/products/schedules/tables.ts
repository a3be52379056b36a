import type { Immutable } from "../../platform/storage/columns.ts";

/** Cron triggers of scripts, with the minute of their last run. */
export interface SchedulesTable {
  account_id: Immutable<string>;
  script_name: Immutable<string>;
  cron: Immutable<string>;
  last_run_on: number;
  missed_runs: number;
  last_missed_on: number | null;
  created_on: Immutable<number>;
  modified_on: number;
}
