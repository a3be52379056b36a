import type { DatabaseSync } from "node:sqlite";

/** A table of which the test kit keeps copies. */
export interface KeptTable {
  name: string;
  columns: readonly string[];
  /** The columns that identify a row, which are those of the primary key if they can be that. */
  key: readonly string[];
  /** Whether the key is SQLite's hidden `rowid`. */
  hasHiddenKey: boolean;
  /** SQLite's own tables have no triggers, so their written rows cannot be noted. */
  isNoted: boolean;
}

export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;
export const listOf = (names: readonly string[]): string => names.map(quoted).join(", ");

/** The tables of the main database. SQLite's own are last, because writes to others change them. */
export const tablesOf = (database: DatabaseSync): KeptTable[] =>
  database
    .prepare("select name, wr from pragma_table_list where schema = 'main' and type = 'table'")
    .all()
    .map(({ name, wr }) => ({ name: String(name), isWithoutRowid: wr === 1 }))
    .filter(({ name }) => !name.startsWith("sqlite_") || name === "sqlite_sequence")
    .map(({ name, isWithoutRowid }) => {
      const columns = database.prepare(`pragma main.table_info(${quoted(name)})`).all();
      const primary = columns
        .filter(({ pk }) => Number(pk) > 0)
        .sort((a, b) => Number(a["pk"]) - Number(b["pk"]));
      const isRowid = primary.length === 1 && String(primary[0]!["type"]).toUpperCase() === "INTEGER";
      const hasHiddenKey = !isWithoutRowid && !isRowid;
      return {
        name,
        columns: columns.map((column) => String(column["name"])),
        key: hasHiddenKey ? ["rowid"] : primary.map((column) => String(column["name"])),
        hasHiddenKey,
        isNoted: name !== "sqlite_sequence",
      };
    })
    .sort((a, b) => Number(b.isNoted) - Number(a.isNoted));
