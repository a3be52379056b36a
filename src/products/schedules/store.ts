import type { Selectable } from "kysely";
import type { SchedulesTable } from "./tables.ts";
import type { Read, Write } from "../../platform/storage/storage.ts";
import type { Schedule } from "./schedule.ts";

const toSchedule = (row: Selectable<SchedulesTable>): Schedule => ({
  accountId: row.account_id,
  scriptName: row.script_name,
  cron: row.cron,
  lastRunOn: row.last_run_on,
  missedRuns: row.missed_runs,
  lastMissedOn: row.last_missed_on,
  createdOn: row.created_on,
  modifiedOn: row.modified_on,
});

export async function loadAll(read: Read): Promise<Schedule[]> {
  const rows = await read.selectFrom("schedules").selectAll().orderBy("created_on").orderBy("cron").execute();
  return rows.map(toSchedule);
}

export async function cronsOf(read: Read, accountId: string, scriptName: string): Promise<string[]> {
  const rows = await read
    .selectFrom("schedules")
    .select("cron")
    .where("account_id", "=", accountId)
    .where("script_name", "=", scriptName)
    .execute();
  return rows.map(({ cron }) => cron);
}

export async function insert(trx: Write, schedules: readonly Schedule[]): Promise<void> {
  if (schedules.length === 0) return;
  await trx
    .insertInto("schedules")
    .values(
      schedules.map((each) => ({
        account_id: each.accountId,
        script_name: each.scriptName,
        cron: each.cron,
        last_run_on: each.lastRunOn,
        missed_runs: each.missedRuns,
        last_missed_on: each.lastMissedOn,
        created_on: each.createdOn,
        modified_on: each.modifiedOn,
      })),
    )
    .execute();
}

/** Without `crons`, all of the script's schedules. */
export async function remove(
  trx: Write,
  accountId: string,
  scriptName: string,
  crons?: readonly string[],
): Promise<void> {
  if (crons?.length === 0) return;
  await trx
    .deleteFrom("schedules")
    .where("account_id", "=", accountId)
    .where("script_name", "=", scriptName)
    .$if(crons !== undefined, (query) => query.where("cron", "in", crons!))
    .execute();
}

/**
 * Claims the runs until a minute for this node. False when another node was faster, or the schedule was
 * deleted.
 */
export async function claim(
  trx: Write,
  { accountId, scriptName, cron, lastRunOn }: Schedule,
  claimed: { until: number; missedRuns: number; lastMissedOn: number | undefined },
): Promise<boolean> {
  const result = await trx
    .updateTable("schedules")
    .set((eb) => ({
      last_run_on: claimed.until,
      missed_runs: eb("missed_runs", "+", claimed.missedRuns),
      ...(claimed.lastMissedOn === undefined ? {} : { last_missed_on: claimed.lastMissedOn }),
    }))
    .where("account_id", "=", accountId)
    .where("script_name", "=", scriptName)
    .where("cron", "=", cron)
    .where("last_run_on", "=", lastRunOn)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}
