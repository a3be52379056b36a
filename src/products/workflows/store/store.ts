import { sql, type Selectable } from "kysely";
import type { WorkflowEventsTable, WorkflowInstancesTable, WorkflowJournalTable } from "../tables.ts";
import { isDataRefused } from "../../../platform/storage/dialects.ts";
import { prepared } from "../../../platform/storage/prepared.ts";
import type { Storage } from "../../../platform/storage/storage.ts";
import type { EventRow, InstanceRow, TriggerSource } from "../instance.ts";
import type { JournalRow, RowKind } from "./journal.ts";
import { LastCommit, postgresCommit } from "./store-postgres.ts";
import { sqliteCommit } from "./store-sqlite.ts";
import type { Status } from "../transitions.ts";
import { RefusedWriteError, type Commit } from "./writer.ts";

export interface WholeInstance {
  row: InstanceRow;
  journal: JournalRow[];
  events: EventRow[];
}

/** Reads and commits of the engine. `shards` is undefined for a single node. */
export interface InstanceStore {
  commit: Commit;
  instances(rids: readonly number[]): Promise<InstanceRow[]>;
  journal(rid: number, run: number): Promise<JournalRow[]>;
  events(rid: number): Promise<EventRow[]>;
  /** Reads instances with all their rows. */
  whole(rids: readonly number[]): Promise<WholeInstance[]>;
  /** Instances that were queued or running. */
  live(shards: readonly number[] | undefined): Promise<InstanceRow[]>;
  waking(beforeMs: number, shards: readonly number[] | undefined): Promise<{ rid: number; wakeOn: number }[]>;
  expired(
    beforeMs: number,
    limit: number,
    shards: readonly number[] | undefined,
  ): Promise<{ rid: number; shard: number }[]>;
  /** Instances whose workflow has been deleted. */
  orphaned(limit: number, shards: readonly number[] | undefined): Promise<{ rid: number; shard: number }[]>;
}

export const toInstance = (row: Selectable<WorkflowInstancesTable>): InstanceRow => ({
  rid: row.rid,
  shard: row.shard,
  accountId: row.account_id,
  workflowRid: row.workflow_rid,
  id: row.id,
  trigger: row.trigger as TriggerSource,
  creatorTrace: row.creator_trace,
  params: row.params,
  successRetentionMs: row.success_retention_ms,
  errorRetentionMs: row.error_retention_ms,
  status: row.status as Status,
  run: row.run,
  versionRid: row.version_rid,
  createdOn: row.created_on,
  modifiedOn: row.modified_on,
  startedOn: row.started_on,
  endedOn: row.ended_on,
  pausedOn: row.paused_on,
  wakeOn: row.wake_on,
  expiresOn: row.expires_on,
  crashes: row.crashes,
  output: row.output,
  error: row.error,
});
const toJournalRow = (row: Selectable<WorkflowJournalTable>): JournalRow => ({
  rid: row.rid,
  run: row.run,
  kind: row.kind as RowKind,
  key: row.key,
  attempt: row.attempt,
  at: row.at,
  startedOn: row.started_on,
  due: row.due,
  value: row.value,
  error: row.error,
  config: row.config,
});
const toEvent = ({ rid, number, type, payload, at }: Selectable<WorkflowEventsTable>): EventRow => ({
  rid,
  number,
  type,
  payload,
  at,
});

/** An event that occurs twice, because a commit was retried after its response was lost, counts once. */
const once = (events: EventRow[]): EventRow[] =>
  events.filter(({ number }, i) => number !== events[i - 1]?.number);

const one = prepared((db, { rid }: { rid: number }) =>
  db.selectFrom("workflow_instances").selectAll().where("rid", "=", rid),
);
const journalOf = prepared((db, { rid, run }: { rid: number; run: number }) =>
  db.selectFrom("workflow_journal").selectAll().where("rid", "=", rid).where("run", "=", run).orderBy("seq"),
);
const eventsOf = prepared((db, { rid }: { rid: number }) =>
  db.selectFrom("workflow_events").selectAll().where("rid", "=", rid).orderBy("number"),
);

/** `node` identifies this process in the leases on PostgreSQL. */
export function instanceStore(storage: Storage, node: string): InstanceStore {
  const { read, direct } = storage;
  const last = new LastCommit();
  const onSqlite = direct && sqliteCommit(direct);
  const instances = (shards: readonly number[] | undefined) => {
    const query = read.selectFrom("workflow_instances");
    return shards === undefined ? query : query.where("shard", "in", [...shards, -1]);
  };
  return {
    async commit(batch, leases) {
      try {
        return await (onSqlite?.(batch) ?? postgresCommit(read, batch, { node, leases, last }));
      } catch (error) {
        throw isDataRefused(error) ? new RefusedWriteError(error) : error;
      }
    },
    async instances(rids) {
      const [rid] = rids;
      const rows =
        rids.length === 1 && rid !== undefined
          ? await one(read, { rid })
          : await read.selectFrom("workflow_instances").selectAll().where("rid", "in", rids).execute();
      return rows.map(toInstance);
    },
    journal: async (rid, run) => (await journalOf(read, { rid, run })).map(toJournalRow),
    events: async (rid) => once((await eventsOf(read, { rid })).map(toEvent)),
    async whole(rids) {
      const all = <T extends "workflow_instances" | "workflow_journal" | "workflow_events">(table: T) =>
        read.selectFrom(table as "workflow_events").where("rid", "in", rids);
      const rows = await all("workflow_instances").selectAll().orderBy("rid").execute();
      const journal = await all("workflow_journal").selectAll().orderBy("seq").execute();
      const events = await all("workflow_events").selectAll().orderBy("number").execute();
      const journals = Map.groupBy(
        (journal as unknown as Selectable<WorkflowJournalTable>[]).map(toJournalRow),
        ({ rid }) => rid,
      );
      const buffered = Map.groupBy(events.map(toEvent), ({ rid }) => rid);
      return (rows as unknown as Selectable<WorkflowInstancesTable>[]).map(toInstance).map((row) => ({
        row,
        journal: (journals.get(row.rid) ?? []).filter(({ run }) => run === row.run),
        events: once(buffered.get(row.rid) ?? []),
      }));
    },
    async live(shards) {
      const rows = await instances(shards)
        .selectAll()
        // A literal list, because SQLite does not use partial indexes for parameters.
        .where(sql<boolean>`status in ('queued', 'running', 'waitingForPause')`)
        .orderBy("rid")
        .execute();
      return rows.map(toInstance);
    },
    async waking(beforeMs, shards) {
      const rows = await instances(shards)
        .select(["rid", "wake_on"])
        .where("wake_on", "is not", null)
        .where("wake_on", "<", beforeMs)
        .orderBy("wake_on")
        .execute();
      return rows.map((row) => ({ rid: row.rid, wakeOn: row.wake_on! }));
    },
    async expired(beforeMs, limit, shards) {
      return instances(shards)
        .select(["rid", "shard"])
        .where("expires_on", "is not", null)
        .where("expires_on", "<=", beforeMs)
        .orderBy("expires_on")
        .limit(limit)
        .execute();
    },
    async orphaned(limit, shards) {
      // One index step finds each workflow with instances, however many instances it has.
      const { rows } = await sql<{ rid: number }>`
        with recursive owners (rid) as (
          select min(workflow_rid) from workflow_instances
          union all
          select (select min(workflow_rid) from workflow_instances where workflow_rid > owners.rid)
          from owners where owners.rid is not null)
        select rid from owners where rid is not null and rid not in (select rid from workflows)`.execute(
        read,
      );
      if (rows.length === 0) return [];
      return instances(shards)
        .select(["rid", "shard"])
        .where(
          "workflow_rid",
          "in",
          rows.map(({ rid }) => rid),
        )
        .orderBy("rid")
        .limit(limit)
        .execute();
    },
  };
}
