import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { quoted, type KeptTable } from "./kept-table.ts";

/** The values of the columns that identify a row. */
export type RowKey = readonly SQLInputValue[];

/** Beyond this number, a table counts as written in whole. */
const notedMax = 50_000;
const noteFunction = "selvedge_note_row";

/** Written rows of one table. */
export class NotedRows {
  /** Undefined: any row may be written. */
  #keys: Map<unknown, RowKey> | undefined = new Map();

  get keys(): Iterable<RowKey> | undefined {
    return this.#keys?.values();
  }

  /** Infinite if any row may be written. */
  get size(): number {
    return this.#keys?.size ?? Infinity;
  }

  add(key: RowKey): void {
    this.#keys?.set(key.length === 1 ? key[0] : JSON.stringify(key), key);
    if (this.size > notedMax) this.#keys = undefined;
  }

  addAll({ keys }: NotedRows): void {
    if (keys === undefined) this.#keys = undefined;
    else for (const key of keys) this.add(key);
  }
}

/** Written rows by table. */
export class NotedTables extends Map<KeptTable, NotedRows> {
  rowsOf(table: KeptTable): NotedRows {
    let rows = this.get(table);
    if (rows === undefined) this.set(table, (rows = new NotedRows()));
    return rows;
  }

  addAll(others: NotedTables): void {
    for (const [table, rows] of others) this.rowsOf(table).addAll(rows);
  }
}

/**
 * Notes which rows are written, with temporary triggers of the connection. The triggers call a function and write no
 * rows, so `total_changes()` is that of the platform. Rows of transactions that are rolled back are noted too.
 */
export class WrittenRows {
  readonly #database: DatabaseSync;
  readonly #tables: readonly KeptTable[];
  #noted = new NotedTables();

  constructor(database: DatabaseSync, tables: readonly KeptTable[]) {
    this.#database = database;
    this.#tables = tables.filter(({ isNoted }) => isNoted);
    database.function(noteFunction, { varargs: true }, (...values: SQLInputValue[]) => {
      const [table, ...key] = values;
      this.#noted.rowsOf(this.#tables[table as number]!).add(key);
      return null;
    });
    // Also for rows that a conflict replaces.
    database.exec("pragma recursive_triggers = on");
    for (const table of this.#tables) this.watch(table);
  }

  /** The rows that were written since the last call. */
  take(): NotedTables {
    const noted = this.#noted;
    this.#noted = new NotedTables();
    return noted;
  }

  watch(table: KeptTable): void {
    for (const [name, event, version] of this.#triggersOf(table)) {
      const key = table.key.map((column) => `${version}.${quoted(column)}`);
      this.#database.exec(
        `create temp trigger ${quoted(name)} after ${event} on main.${quoted(table.name)}
          begin select ${noteFunction}(${this.#tables.indexOf(table)}, ${key.join(", ")}); end`,
      );
    }
  }

  /** Without triggers, SQLite deletes all rows of a table at once. */
  unwatch(table: KeptTable): void {
    for (const [name] of this.#triggersOf(table)) this.#database.exec(`drop trigger temp.${quoted(name)}`);
  }

  #triggersOf({ name, key, columns }: KeptTable): [name: string, event: string, version: "old" | "new"][] {
    const keyColumns = key.filter((column) => columns.includes(column)).map(quoted);
    return [
      [`${name} inserted`, "insert", "new"],
      [`${name} deleted`, "delete", "old"],
      [`${name} updated`, "update", "old"],
      ...(keyColumns.length === 0
        ? []
        : [[`${name} renamed`, `update of ${keyColumns.join(", ")}`, "new"] as [string, string, "new"]]),
    ];
  }
}
