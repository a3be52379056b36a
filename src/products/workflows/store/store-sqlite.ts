import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import type { WriteBatch } from "./batch.ts";
import { eventColumns, instanceColumns, journalColumns, stateColumns } from "./store-columns.ts";

/** Row ids reserved from SQLite's sequence at a time. */
const numbersAtOnce = 1000;

type Direct = <T>(work: (database: DatabaseSync) => T) => Promise<T>;

/** Writes batches on SQLite: prepared statements in one transaction, on the shared connection. */
export function sqliteCommit(direct: Direct): (batch: WriteBatch) => Promise<(number | null)[]> {
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
        statements.numbers.forget(); // a rollback may have returned them
        throw error;
      }
    });
}

type Statements = ReturnType<typeof prepare>;
type Values = SQLInputValue[];

function prepare(database: DatabaseSync) {
  const insert = (table: string, columns: readonly string[]): StatementSync =>
    database.prepare(
      `insert into ${table} (${columns.map((name) => `"${name}"`).join(", ")}) values (${columns.map(() => "?").join(", ")})`,
    );
  return {
    numbers: new Numbers(database),
    begin: database.prepare("begin immediate"),
    commit: database.prepare("commit"),
    // Skips instances of workflows that were deleted in the meantime.
    create: database.prepare(
      `insert into workflow_instances ("rid", ${instanceColumns.names.map((name) => `"${name}"`).join(", ")}) select ?, ${instanceColumns.names.map(() => "?").join(", ")} where exists (select 1 from workflows where rid = ?) on conflict do nothing`,
    ),
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

function write(statements: Statements, batch: WriteBatch): (number | null)[] {
  const created = batch.creates.map((instance) => {
    const rid = statements.numbers.next();
    const values = instanceColumns.values(instance) as Values;
    const { changes } = statements.create.run(rid, ...values, instance.workflowRid);
    return changes === 0 ? null : rid;
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

/**
 * Allocates row ids for new instances; an id is never reused. AUTOINCREMENT writes `sqlite_sequence`, which
 * costs one more page in each commit, so ids are reserved a thousand at a time. A process leaves its unused
 * ids out.
 */
class Numbers {
  readonly #count: StatementSync;
  #last = 0;
  #end = 0;

  constructor(database: DatabaseSync) {
    this.#count = database.prepare(
      `update sqlite_sequence set seq = seq + ${numbersAtOnce} where name = 'workflow_instances' returning seq`,
    );
  }

  /** Call within a transaction. */
  next(): number {
    if (this.#last === this.#end) {
      this.#end = (this.#count.get() as { seq: number }).seq;
      this.#last = this.#end - numbersAtOnce;
    }
    return ++this.#last;
  }

  forget(): void {
    this.#last = this.#end;
  }
}
