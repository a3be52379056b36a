import { prepared } from "../../../platform/storage/prepared.ts";
import type { Read } from "../../../platform/storage/storage.ts";
import type { InstanceRow } from "../instance.ts";
import { toInstance } from "./store.ts";
import { finalStatuses, type Status } from "../transitions.ts";

export interface InstanceFilter {
  status?: Status | undefined;
  createdFrom?: number | undefined;
  createdTo?: number | undefined;
}

export interface InstancePage {
  limit: number;
  offset: number;
  /** Lists instances after this row id, in the direction of the list. */
  after?: number | undefined;
  direction: "asc" | "desc";
}

/** Counting stops here, because counting long lists is slow. */
const countMax = 10_000;

/** The numbers of instances of all workflows by status. Reads an index of all instances. */
export async function countAllByStatus(read: Read): Promise<Partial<Record<Status, number>>> {
  const rows = await read
    .selectFrom("workflow_instances")
    .select((eb) => ["status", eb.fn.countAll<number>().as("count")])
    .groupBy("status")
    .execute();
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
}

const byId = prepared((db, { workflowRid, id }: { workflowRid: number; id: string }) =>
  db
    .selectFrom("workflow_instances")
    .selectAll()
    .where("workflow_rid", "=", workflowRid)
    .where("id", "=", id),
);

export async function findInstance(
  read: Read,
  workflowRid: number,
  id: string,
): Promise<InstanceRow | undefined> {
  const [row] = await byId(read, { workflowRid, id });
  return row && toInstance(row);
}

/** The number of these ids that exist in a workflow. */
export async function countExisting(
  read: Read,
  workflowRid: number,
  ids: readonly string[],
): Promise<number> {
  if (ids.length === 0) return 0;
  const { count } = await read
    .selectFrom("workflow_instances")
    .where("workflow_rid", "=", workflowRid)
    .where("id", "in", ids)
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return count;
}

function matching(read: Read, workflowRid: number, filter: InstanceFilter) {
  let query = read.selectFrom("workflow_instances").where("workflow_rid", "=", workflowRid);
  if (filter.status !== undefined) query = query.where("status", "=", filter.status);
  if (filter.createdFrom !== undefined) query = query.where("created_on", ">=", filter.createdFrom);
  if (filter.createdTo !== undefined) query = query.where("created_on", "<=", filter.createdTo);
  return query;
}

export async function listInstances(
  read: Read,
  workflowRid: number,
  filter: InstanceFilter,
  page: InstancePage,
): Promise<{ instances: InstanceRow[]; total: number }> {
  let query = matching(read, workflowRid, filter);
  if (page.after !== undefined) query = query.where("rid", page.direction === "asc" ? ">" : "<", page.after);
  const rows = await query
    .selectAll()
    .orderBy("rid", page.direction)
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  const { total } = await read
    .selectFrom(matching(read, workflowRid, filter).select("rid").limit(countMax).as("some"))
    .select((e) => e.fn.countAll<number | string>().as("total"))
    .executeTakeFirstOrThrow();
  return { instances: rows.map(toInstance), total: Number(total) };
}

/** The number of instances in each status, by workflow. */
export async function countByStatus(
  read: Read,
  workflowRids: readonly number[],
): Promise<Map<number, Partial<Record<Status, number>>>> {
  if (workflowRids.length === 0) return new Map();
  const rows = await read
    .selectFrom("workflow_instances")
    .select(["workflow_rid", "status", (e) => e.fn.countAll<number | string>().as("total")])
    .where("workflow_rid", "in", workflowRids)
    .groupBy(["workflow_rid", "status"])
    .execute();
  const counts = new Map<number, Partial<Record<Status, number>>>();
  for (const { workflow_rid, status, total } of rows) {
    counts.set(workflow_rid, { ...counts.get(workflow_rid), [status]: Number(total) });
  }
  return counts;
}

/** Creation time of the newest instance of each workflow. */
export async function lastTriggered(
  read: Read,
  workflowRids: readonly number[],
): Promise<Map<number, number>> {
  const rows = await Promise.all(
    workflowRids.map(async (rid) =>
      read
        .selectFrom("workflow_instances")
        .select(["workflow_rid", "created_on"])
        .where("workflow_rid", "=", rid)
        .orderBy("rid", "desc")
        .limit(1)
        .executeTakeFirst(),
    ),
  );
  return new Map(rows.flatMap((row) => (row === undefined ? [] : [[row.workflow_rid, row.created_on]])));
}

/** Some instances of a workflow, for bulk operations. */
export async function someInstances(
  read: Read,
  workflowRid: number,
  which: { statuses?: readonly Status[]; after: number; limit: number },
): Promise<{ rid: number; shard: number; isFinal: boolean }[]> {
  let query = read.selectFrom("workflow_instances").where("workflow_rid", "=", workflowRid);
  if (which.statuses !== undefined) query = query.where("status", "in", which.statuses);
  const rows = await query
    .select(["rid", "shard", "status"])
    .where("rid", ">", which.after)
    .orderBy("rid")
    .limit(which.limit)
    .execute();
  return rows.map(({ rid, shard, status }) => ({
    rid,
    shard,
    isFinal: finalStatuses.includes(status as Status),
  }));
}
