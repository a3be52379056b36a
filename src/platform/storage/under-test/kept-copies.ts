import type { DatabaseSync } from "node:sqlite";

/*
 * Copies of all rows, in a second in-memory database on the same connection. `deserialize()` would be
 * shorter, but Node 26.10 then crashes when it collects a statement that was prepared before.
 */

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;
const copyOf = (copy: number, table: string): string => `kept.${quoted(`${copy} ${table}`)}`;

/** Keeps a copy of all rows under a number. */
export function keepCopy(database: DatabaseSync, copy: number): void {
  const isAttached = database
    .prepare("pragma database_list")
    .all()
    .some(({ name }) => name === "kept");
  if (!isAttached) database.exec("attach ':memory:' as kept");
  const statements = tablesOf(database).map(
    (table) => `create table ${copyOf(copy, table)} as select * from main.${quoted(table)}`,
  );
  inTransaction(database, statements);
}

/** Replaces all rows by those of a copy. */
export function bringCopyBack(database: DatabaseSync, copy: number): void {
  const statements = tablesOf(database).flatMap((table) => [
    `delete from main.${quoted(table)}`,
    `insert into main.${quoted(table)} select * from ${copyOf(copy, table)}`,
  ]);
  // Rows are restored in the order of the tables, and not of their references.
  database.exec("pragma foreign_keys = off");
  try {
    inTransaction(database, statements);
  } finally {
    database.exec("pragma foreign_keys = on");
  }
}

/** Forgets a copy. */
export function dropCopy(database: DatabaseSync, copy: number): void {
  inTransaction(
    database,
    tablesOf(database).map((table) => `drop table ${copyOf(copy, table)}`),
  );
}

const tablesOf = (database: DatabaseSync): string[] =>
  database
    .prepare("select name from main.sqlite_master where type = 'table'")
    .all()
    .map(({ name }) => String(name))
    .filter((name) => !name.startsWith("sqlite_") || name === "sqlite_sequence");

function inTransaction(database: DatabaseSync, statements: readonly string[]): void {
  database.exec(`begin; ${statements.join("; ")}; commit`);
}
