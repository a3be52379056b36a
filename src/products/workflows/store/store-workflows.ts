import type { Selectable } from "kysely";
import type { WorkflowsTable, WorkflowVersionsTable } from "../tables.ts";
import type { Read, Write } from "../../../platform/storage/storage.ts";
import { finalStatuses } from "../transitions.ts";
import type { Retention, Workflow, WorkflowVersion } from "../workflow.ts";

const toWorkflow = (row: Selectable<WorkflowsTable>): Workflow => ({
  rid: row.rid,
  id: row.id,
  accountId: row.account_id,
  name: row.name,
  scriptName: row.script_name,
  className: row.class_name,
  stepsMax: row.steps_max,
  retention: { successMs: row.success_retention_ms, errorMs: row.error_retention_ms },
  crons: JSON.parse(row.crons) as string[],
  createdOn: row.created_on,
  modifiedOn: row.modified_on,
});
const toVersion = (row: Selectable<WorkflowVersionsTable>): WorkflowVersion => ({
  rid: row.rid,
  id: row.id,
  workflowRid: row.workflow_rid,
  scriptName: row.script_name,
  scriptVersion: row.script_version,
  className: row.class_name,
  stepsMax: row.steps_max,
  createdOn: row.created_on,
});

export async function loadAll(
  read: Read,
): Promise<{ workflows: Workflow[]; settings: Map<string, Retention> }> {
  const workflows = await read.selectFrom("workflows").selectAll().orderBy("name").execute();
  const settings = await read.selectFrom("workflow_settings").selectAll().execute();
  return {
    workflows: workflows.map(toWorkflow),
    settings: new Map(
      settings.map((row) => [
        row.account_id,
        { successMs: row.success_retention_ms, errorMs: row.error_retention_ms },
      ]),
    ),
  };
}

/** Creates or updates a workflow. */
export async function put(
  trx: Write,
  { accountId, name, scriptName, className, stepsMax, retention, crons, ...rest }: Omit<Workflow, "rid">,
): Promise<void> {
  const changing = {
    script_name: scriptName,
    class_name: className,
    steps_max: stepsMax,
    success_retention_ms: retention.successMs,
    error_retention_ms: retention.errorMs,
    crons: JSON.stringify(crons),
    modified_on: rest.modifiedOn,
  };
  await trx
    .insertInto("workflows")
    .values({ id: rest.id, account_id: accountId, name, created_on: rest.createdOn, ...changing })
    .onConflict((conflict) => conflict.columns(["account_id", "name"]).doUpdateSet(changing))
    .execute();
}

export async function exists(read: Read, rid: number): Promise<boolean> {
  const row = await read.selectFrom("workflows").select("rid").where("rid", "=", rid).executeTakeFirst();
  return row !== undefined;
}

export async function remove(trx: Write, rid: number): Promise<void> {
  await trx.deleteFrom("workflow_versions").where("workflow_rid", "=", rid).execute();
  await trx.deleteFrom("workflows").where("rid", "=", rid).execute();
}

export async function putSettings(trx: Write, accountId: string, retention: Retention): Promise<void> {
  const changing = { success_retention_ms: retention.successMs, error_retention_ms: retention.errorMs };
  await trx
    .insertInto("workflow_settings")
    .values({ account_id: accountId, ...changing })
    .onConflict((conflict) => conflict.column("account_id").doUpdateSet(changing))
    .execute();
}

export async function insertVersion(
  read: Read,
  version: Omit<WorkflowVersion, "rid">,
): Promise<WorkflowVersion> {
  const row = await read
    .insertInto("workflow_versions")
    .values({
      id: version.id,
      workflow_rid: version.workflowRid,
      script_name: version.scriptName,
      script_version: version.scriptVersion,
      class_name: version.className,
      steps_max: version.stepsMax,
      created_on: version.createdOn,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  return toVersion(row);
}

export async function findVersion(read: Read, rid: number): Promise<WorkflowVersion | undefined> {
  const row = await read
    .selectFrom("workflow_versions")
    .selectAll()
    .where("rid", "=", rid)
    .executeTakeFirst();
  return row && toVersion(row);
}

/** Returns the given script versions that unfinished instances still run. */
export async function scriptVersionsInUse(read: Read, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const rows = await read
    .selectFrom("workflow_versions")
    .select("script_version")
    .distinct()
    .where("script_version", "in", ids)
    .where((e) =>
      e.exists(
        e
          .selectFrom("workflow_instances")
          .select("workflow_instances.rid")
          .whereRef("workflow_instances.workflow_rid", "=", "workflow_versions.workflow_rid")
          .whereRef("workflow_instances.version_rid", "=", "workflow_versions.rid")
          .where("workflow_instances.status", "not in", [...finalStatuses]),
      ),
    )
    .execute();
  return rows.map(({ script_version }) => script_version);
}

/** Newest first. */
export async function versions(
  read: Read,
  workflowRid: number,
  page: { limit: number; offset: number },
): Promise<{ versions: WorkflowVersion[]; total: number }> {
  const of = read.selectFrom("workflow_versions").where("workflow_rid", "=", workflowRid);
  const rows = await of.selectAll().orderBy("rid", "desc").limit(page.limit).offset(page.offset).execute();
  const { total } = await of
    .select((e) => e.fn.countAll<number | string>().as("total"))
    .executeTakeFirstOrThrow();
  return { versions: rows.map(toVersion), total: Number(total) };
}

export async function findVersionById(
  read: Read,
  workflowRid: number,
  id: string,
): Promise<WorkflowVersion | undefined> {
  const row = await read
    .selectFrom("workflow_versions")
    .selectAll()
    .where("workflow_rid", "=", workflowRid)
    .where("id", "=", id)
    .executeTakeFirst();
  return row && toVersion(row);
}
