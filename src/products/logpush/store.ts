import type { Selectable } from "kysely";
import type { Read, Write } from "../../platform/storage/storage.ts";
import type { DataSetName, LogpushJob, JobOwner, JobState, LogOutput } from "./job.ts";
import type { LogpushJobsTable } from "./tables.ts";

const toJob = (row: Selectable<LogpushJobsTable>): LogpushJob => ({
  id: row.id,
  accountId: row.account_id,
  zoneId: row.zone_id ?? undefined,
  dataSet: row.data_set as DataSetName,
  name: row.name,
  destination: row.destination,
  isEnabled: row.is_enabled === 1,
  output: JSON.parse(row.output) as LogOutput,
  filter: row.filter ?? undefined,
  frequency: row.frequency,
  uploadBytesMax: row.max_upload_bytes,
  uploadRecordsMax: row.max_upload_records,
  uploadIntervalSeconds: row.max_upload_interval_seconds,
  lastComplete: row.last_complete,
  lastError: row.last_error,
  errorMessage: row.error_message,
  failingSince: row.failing_since,
  cursor: row.cursor,
  createdOn: row.created_on,
  modifiedOn: row.modified_on,
});

const changeable = (job: LogpushJob) => ({
  name: job.name,
  destination: job.destination,
  is_enabled: job.isEnabled ? (1 as const) : (0 as const),
  output: JSON.stringify(job.output),
  filter: job.filter ?? null,
  frequency: job.frequency,
  max_upload_bytes: job.uploadBytesMax,
  max_upload_records: job.uploadRecordsMax,
  max_upload_interval_seconds: job.uploadIntervalSeconds,
  ...stateColumns(job),
  modified_on: job.modifiedOn,
});

const stateColumns = (state: JobState) => ({
  last_complete: state.lastComplete,
  last_error: state.lastError,
  error_message: state.errorMessage,
  failing_since: state.failingSince,
  cursor: state.cursor,
});

export async function loadAll(read: Read): Promise<LogpushJob[]> {
  return (await read.selectFrom("logpush_jobs").selectAll().orderBy("created_on").execute()).map(toJob);
}

export async function loadIds(read: Read): Promise<number[]> {
  return (await read.selectFrom("logpush_jobs").select("id").execute()).map(({ id }) => id);
}

/** The jobs of a zone, or those of an account that belong to no zone, oldest first. */
export async function list(read: Read, { accountId, zoneId }: JobOwner): Promise<LogpushJob[]> {
  const all = read.selectFrom("logpush_jobs").selectAll();
  const own =
    zoneId === undefined
      ? all.where("account_id", "=", accountId).where("zone_id", "is", null)
      : all.where("zone_id", "=", zoneId);
  return (await own.orderBy("created_on").orderBy("id").execute()).map(toJob);
}

/** Returns false if the id is taken. */
export async function insert(trx: Write, job: LogpushJob): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await trx
    .insertInto("logpush_jobs")
    .values({
      id: job.id,
      account_id: job.accountId,
      zone_id: job.zoneId ?? null,
      data_set: job.dataSet,
      created_on: job.createdOn,
      ...changeable(job),
    })
    .onConflict((conflict) => conflict.column("id").doNothing())
    .executeTakeFirst();
  return Number(numInsertedOrUpdatedRows) > 0;
}

export async function update(trx: Write, job: LogpushJob): Promise<void> {
  await trx.updateTable("logpush_jobs").set(changeable(job)).where("id", "=", job.id).execute();
}

export async function remove(trx: Write, id: number): Promise<void> {
  await trx.deleteFrom("logpush_jobs").where("id", "=", id).execute();
}

/** Records a successful upload of events until a time. */
export async function setComplete(trx: Write, id: number, untilMs: number): Promise<void> {
  const before = await trx
    .selectFrom("logpush_jobs")
    .select("last_complete")
    .where("id", "=", id)
    .executeTakeFirst();
  const lastComplete = Math.max(before?.last_complete ?? 0, untilMs);
  await trx
    .updateTable("logpush_jobs")
    .set({ last_complete: lastComplete, last_error: null, error_message: null, failing_since: null })
    .where("id", "=", id)
    .execute();
}

/** Records a failed upload. Returns when the job began to fail; undefined if it was deleted. */
export async function setFailed(
  trx: Write,
  id: number,
  nowMs: number,
  message: string,
): Promise<number | undefined> {
  const row = await trx
    .selectFrom("logpush_jobs")
    .select("failing_since")
    .where("id", "=", id)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const failingSince = row.failing_since ?? nowMs;
  await trx
    .updateTable("logpush_jobs")
    .set({ last_error: nowMs, error_message: message, failing_since: failingSince })
    .where("id", "=", id)
    .execute();
  return failingSince;
}

export async function disable(trx: Write, id: number, message: string): Promise<void> {
  await trx
    .updateTable("logpush_jobs")
    .set({ is_enabled: 0, error_message: message })
    .where("id", "=", id)
    .execute();
}

/** Notes that events are dropped. Failures of uploads are noted apart. */
export async function setDropping(trx: Write, id: number, nowMs: number, message: string): Promise<void> {
  await trx
    .updateTable("logpush_jobs")
    .set({ last_error: nowMs, error_message: message })
    .where("id", "=", id)
    .execute();
}

export async function setCursor(trx: Write, ids: readonly number[], cursor: string): Promise<void> {
  await trx.updateTable("logpush_jobs").set({ cursor }).where("id", "in", ids).execute();
}

/** The positions of all jobs that have one. */
export async function cursors(read: Read): Promise<Map<number, string>> {
  const rows = await read
    .selectFrom("logpush_jobs")
    .select(["id", "cursor"])
    .where("cursor", "is not", null)
    .execute();
  return new Map(rows.map(({ id, cursor }) => [id, cursor!]));
}
