import type { DatabaseSync } from "node:sqlite";
import { Kysely } from "kysely";
import { migrate, schemaVersions } from "../../src/platform/storage/migrations/migrate.ts";
import type { Database } from "../../src/platform/storage/schema.ts";
import { openSqlite, sqliteDialect } from "../../src/platform/storage/sqlite.ts";

/**
 * The text of src/platform/storage/migrations/sqlite-schema.json: the statements that make the schema which all
 * migrations leave, with the rows that they write, such as the beginning of a sequence.
 */
export async function sqliteSchema(): Promise<string> {
  const database = openSqlite(":memory:");
  const read = new Kysely<Database>({ dialect: sqliteDialect(database) });
  await migrate({ read, engine: "sqlite" });
  const statements = database
    .prepare(
      "select sql from sqlite_master where sql is not null and name not like 'sqlite%' order by type <> 'table', rowid",
    )
    .all()
    .map((row) => String(row["sql"]));
  const inserts = tablesIn(database).flatMap((table) => insertsOf(database, table));
  await read.destroy();
  return `${JSON.stringify({ versions: schemaVersions, statements: [...statements, ...inserts] }, null, 2)}\n`;
}

/** All tables, except those in which a start notes its own state. */
const tablesIn = (database: DatabaseSync): string[] =>
  database
    .prepare(
      "select name from sqlite_master where type = 'table' and name not like 'kysely%' and name <> 'schema_info' order by name",
    )
    .all()
    .map(({ name }) => `"${String(name)}"`);

function insertsOf(database: DatabaseSync, table: string): string[] {
  const columns = database.prepare(`select * from ${table}`).columns();
  const names = columns.map(({ name }) => `"${name}"`);
  const values = names.map((name) => `quote(${name})`).join(" || ', ' || ");
  return database
    .prepare(`select ${values} as text from ${table} order by 1`)
    .all()
    .map(({ text }) => `insert into ${table} (${names.join(", ")}) values (${String(text)})`);
}
