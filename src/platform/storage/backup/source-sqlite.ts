import { existsSync } from "node:fs";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { BackupError } from "../archive/errors.ts";
import type { Table } from "./model.ts";
import { Pace } from "./pace.ts";
import type { Row } from "./rows.ts";
import { batchBytes, rowBytes, columnsOf, quoted, type Snapshot, type Source } from "./source.ts";

/**
 * Reads a SQLite file that a node may have open. The snapshot is one read transaction over the write-ahead log:
 * it holds up no writer, and only keeps the log from being reused until it ends.
 */
export function sqliteSource(path: string): Source {
  if (!existsSync(path)) throw new BackupError(`Expected a database at ${path} but there is no such file.`);
  const open = (): DatabaseSync => new DatabaseSync(path, { readOnly: true, timeout: 5000 });
  const database = open();
  const present = open();
  const pace = new Pace(`${path}-wal`);
  return {
    engine: "sqlite",
    pace,
    async schemas() {
      const rows = database.prepare("select name from kysely_migration order by name").all();
      return rows.map(({ name }) => name as string);
    },
    async snapshot(work) {
      database.exec("begin");
      try {
        database.prepare("select count(*) from sqlite_master").get(); // the first read fixes the point in time
        return await work(snapshotOf(database, pace));
      } finally {
        database.exec("rollback");
      }
    },
    async current(table, like) {
      const where = table.key.map((name) => `${quoted(name)} = ?`).join(" and ");
      return present
        .prepare(`select ${columnsOf(table)} from ${quoted(table.name)} where ${where}`)
        .get(...table.key.map((name) => like[name] as SQLInputValue)) as Row | undefined;
    },
    async close() {
      database.close();
      present.close();
    },
  };
}

const snapshotOf = (database: DatabaseSync, pace: Pace): Snapshot => ({
  async *rows(table: Table) {
    const order = table.key.map(quoted).join(", ");
    const statement = database.prepare(
      `select ${columnsOf(table)} from ${quoted(table.name)} order by ${order}`,
    );
    let batch: Row[] = [];
    let bytes = 0;
    for (const row of statement.iterate() as Iterable<Row>) {
      batch.push(row);
      bytes += rowBytes(row);
      if (bytes < batchBytes) continue;
      yield batch;
      [batch, bytes] = [[], 0];
      await pace.rest();
    }
    if (batch.length > 0) yield batch;
  },
  async highestNumber(table) {
    const counted = table.remembersNumbers
      ? database.prepare("select seq from sqlite_sequence where name = ?").get(table.name)?.["seq"]
      : undefined;
    const { highest } = database
      .prepare(`select coalesce(max(${quoted(table.key[0]!)}), 0) as highest from ${quoted(table.name)}`)
      .get() as { highest: number };
    return Math.max(highest, Number(counted ?? 0));
  },
});
