import { DatabaseSync } from "node:sqlite";
import type { SavedFile } from "./kept-files.ts";

const table = "files_of_tests";

/** A SQLite database with all rows, and with the files beside it in a table of their own. */
export function withFiles(rows: Uint8Array, files: readonly SavedFile[]): Uint8Array {
  if (files.length === 0) return rows;
  const database = new DatabaseSync(":memory:");
  try {
    database.deserialize(rows);
    database.exec(`create table ${table} (path text primary key, content blob not null) strict`);
    const insert = database.prepare(`insert into ${table} (path, content) values (?, ?)`);
    for (const { path, content } of files) insert.run(path, content);
    return database.serialize();
  } finally {
    database.close();
  }
}

/** Takes the files out of a database that began with a saved state. */
export function takeFiles(database: DatabaseSync): SavedFile[] {
  const isThere = database
    .prepare("select 1 from sqlite_master where type = 'table' and name = ?")
    .get(table);
  if (isThere === undefined) return [];
  const files = database.prepare(`select path, content from ${table}`).all() as unknown as SavedFile[];
  database.exec(`drop table ${table}`);
  return files;
}
