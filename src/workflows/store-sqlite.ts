import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import type { Batch } from "./batch.ts";
import { eventColumns, instanceColumns, journalColumns, stateColumns } from "./store-columns.ts";

type Direct = <T>(work: (database: DatabaseSync) => T) => Promise<T>;

/** Writes batches on SQLite: prepared statements in one transaction, on the connection that everything shares. */
export function sqliteCommit(direct: Direct): (batch: Batch) => Promise<(number | null)[]> {
  let statements: Statements | undefined;
  return (batch) =>
    direct((database) => {
      statements ??= prepare(database);
      statements.begin.run();
      try {
        const created = write(statements, batch);
        statements.commit.run();
        return created;
      } catch (error) {
        if (database.isTransaction) database.exec("rollback");
        throw error;
      }
    });
}

type Statements = ReturnType<typeof prepare>;
type Values = SQLInputValue[];

function prepare(database: DatabaseSync) {
  const insert = (table: string, columns: readonly string[], conflict = ""): StatementSync =>
    database.prepare(
      `insert into ${table} (${columns.map((name) => `"${name}"`).join(", ")}) values (${columns.map(() => "?").join(", ")}) ${conflict}`,
    );
  return {
    begin: database.prepare("begin immediate"),
    commit: database.prepare("commit"),
    create: insert("workflow_instances", instanceColumns.names, "on conflict do nothing"),
    update: database.prepare(
      `update workflow_instances set ${stateColumns.names.map((name) => `"${name}" = ?`).join(", ")} where rid = ?`,
    ),
    journal: insert("workflow_journal", journalColumns.names),
    event: insert("workflow_events", eventColumns.names),
    consume: database.prepare("delete from workflow_events where rid = ? and number = ?"),
    wipeJournal: database.prepare("delete from workflow_journal where rid = ? and run < ?"),
    wipeEvents: database.prepare("delete from workflow_events where rid = ?"),
    remove: database.prepare("delete from workflow_instances where rid = ?"),
  };
}

function write(statements: Statements, batch: Batch): (number | null)[] {
  const created = batch.creates.map((instance) => {
    const { changes, lastInsertRowid } = statements.create.run(
      ...(instanceColumns.values(instance) as Values),
    );
    return changes === 0 ? null : Number(lastInsertRowid);
  });
  for (const [rid, state] of batch.updates)
    statements.update.run(...(stateColumns.values(state) as Values), rid);
  for (const row of batch.journal) statements.journal.run(...(journalColumns.values(row) as Values));
  for (const row of batch.events) statements.event.run(...(eventColumns.values(row) as Values));
  for (const { rid, number } of batch.consumed) statements.consume.run(rid, number);
  for (const [rid, run] of batch.wipes) {
    statements.wipeJournal.run(rid, run);
    statements.wipeEvents.run(rid);
  }
  for (const rid of batch.removes) {
    statements.wipeJournal.run(rid, Number.MAX_SAFE_INTEGER);
    statements.wipeEvents.run(rid);
    statements.remove.run(rid);
  }
  return created;
}
