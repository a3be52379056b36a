import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { Kysely } from "kysely";
import { syncPath } from "../durability.ts";
import { migrate } from "../migrations/migrate.ts";
import type { Database } from "../schema.ts";
import { sqliteDialect } from "../sqlite.ts";
import { BackupError } from "../archive/errors.ts";
import type { Table } from "./model.ts";
import type { SqlValue } from "./rows.ts";
import { columnsOf, quoted } from "./source.ts";
import type { Loader, Target } from "./target.ts";

/** A SQLite file, written beside its final name and renamed when it is complete and on disk. */
export function sqliteTarget(path: string): Target {
  const partial = `${path}.restoring`;
  let opened: { database: DatabaseSync; read: Kysely<Database> } | undefined;
  const partialDatabase = (): NonNullable<typeof opened> => {
    if (opened !== undefined) return opened;
    const database = new DatabaseSync(partial);
    // The file is flushed as a whole at the end, and is removed if the restore fails.
    database.exec("pragma journal_mode = memory; pragma synchronous = off");
    opened = { database, read: new Kysely<Database>({ dialect: sqliteDialect(database) }) };
    return opened;
  };
  const closePartial = async (): Promise<void> => {
    await opened?.read.destroy();
    opened = undefined;
  };
  const migrateTo = async (schema?: string): Promise<void> =>
    migrate({ read: partialDatabase().read, engine: "sqlite" }, schema);
  return {
    async refuseUnlessEmpty() {
      if (existsSync(path)) throw new BackupError(`Expected no database at ${path}, but there is one.`);
    },
    async prepare(schema) {
      await rm(partial, { force: true });
      await migrateTo(schema);
    },
    async load(work) {
      const { database } = partialDatabase();
      database.exec("pragma foreign_keys = off; begin");
      await work(loaderOf(database));
      const [orphan] = database.prepare("pragma foreign_key_check").all();
      if (orphan !== undefined)
        throw new BackupError(
          `A row of table ${String(orphan["table"])} refers to a row that does not exist.`,
        );
      database.exec("commit");
    },
    migrate: () => migrateTo(),
    async finish() {
      await closePartial();
      await syncPath(partial);
      await rename(partial, path);
      await syncPath(dirname(path));
    },
    async close() {
      await closePartial();
      await rm(partial, { force: true });
    },
  };
}

function loaderOf(database: DatabaseSync): Loader {
  const inserts = new Map<Table, StatementSync>();
  const insertInto = (table: Table): StatementSync => {
    const marks = table.columns.map(() => "?").join(", ");
    const text = `insert into ${quoted(table.name)} (${columnsOf(table)}) values (${marks})`;
    const insert = inserts.get(table) ?? database.prepare(text);
    inserts.set(table, insert);
    return insert;
  };
  return {
    async insert(table, rows) {
      const insert = insertInto(table);
      for (const row of rows)
        insert.run(...table.columns.map(({ name }) => row[name] as SqlValue as SQLInputValue));
    },
    async countFrom(table, highest) {
      if (!table.remembersNumbers) return;
      database.prepare("delete from sqlite_sequence where name = ?").run(table.name);
      database.prepare("insert into sqlite_sequence (name, seq) values (?, ?)").run(table.name, highest);
    },
  };
}
