import { DatabaseSync } from "node:sqlite";
import type { RestoredRow, RestoredRows } from "../changes/listeners.ts";
import { inTransaction } from "../sqlite.ts";
import { listOf, quoted, tablesOf, type KeptTable } from "./kept-table.ts";
import { NotedTables, WrittenRows, type NotedRows, type RowKey } from "./written-rows.ts";

/** Beyond this number, restored rows of a table are not listed. */
const listedMax = 500;
/** A table is replaced in whole if more rows than this are written, and more than half of its copy. */
const singlyMax = 200;

const rowidColumn = quoted("rowid in main");

/**
 * Copies of all rows, in a second in-memory database on the same connection. A copy is brought back by the rows that
 * were written since. `deserialize()` would be shorter, but Node 26.10 then crashes when it collects a statement that
 * was prepared before.
 */
export class KeptCopies {
  readonly #database: DatabaseSync;
  readonly #tables: readonly KeptTable[];
  readonly #written: WrittenRows;
  /** By the number of the copy: the rows that may differ from it. */
  readonly #differing = new Map<number, NotedTables>();

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#tables = tablesOf(database);
    this.#written = new WrittenRows(database, this.#tables);
    database.exec("attach ':memory:' as kept");
  }

  /** Keeps a copy under a number. */
  keep(copy: number): void {
    inTransaction(this.#database, () => {
      for (const table of this.#tables) {
        const { columns, key, hasHiddenKey, name } = table;
        const own = hasHiddenKey ? `${rowidColumn} integer primary key, ${listOf(columns)}` : listOf(columns);
        const end = hasHiddenKey ? ")" : `, primary key (${listOf(key)})) without rowid`;
        this.#database.exec(`create table ${copyOf(copy, table)} (${own}${end}`);
        this.#database.exec(
          `insert into ${copyOf(copy, table)}
            select ${hasHiddenKey ? "rowid, " : ""}${listOf(columns)} from main.${quoted(name)}`,
        );
      }
    });
    this.#note();
    this.#differing.set(copy, new NotedTables());
  }

  /** Replaces all rows by those of a copy. Returns the rows that were replaced. */
  bringBack(copy: number): RestoredRows {
    this.#note();
    const differing = this.#differing.get(copy)!;
    const restored = new Map<string, readonly RestoredRow[] | "many">();
    // Rows are restored in the order of the tables, and not of their references.
    this.#database.exec("pragma foreign_keys = off");
    try {
      inTransaction(this.#database, () => {
        for (const table of this.#tables) {
          const rows = differing.get(table);
          if (rows !== undefined) restored.set(table.name, this.#restore(copy, table, rows));
          else if (!table.isNoted) bringAll(this.#database, copy, table);
        }
      });
    } finally {
      this.#database.exec("pragma foreign_keys = on");
    }
    this.#written.take();
    this.#differing.set(copy, new NotedTables());
    for (const [other, noted] of this.#differing) if (other !== copy) noted.addAll(differing);
    return restored;
  }

  /** A database with the rows of a copy, made on a connection of its own. */
  serialize(copy: number): Uint8Array {
    const made = new DatabaseSync(":memory:", { enableForeignKeyConstraints: false });
    try {
      made.deserialize(this.#database.serialize());
      made.exec("attach ':memory:' as kept");
      made.deserialize(this.#database.serialize("kept"), { dbName: "kept" });
      for (const table of this.#tables) bringAll(made, copy, table);
      return made.serialize();
    } finally {
      made.close();
    }
  }

  /** Forgets a copy. */
  drop(copy: number): void {
    this.#differing.delete(copy);
    inTransaction(this.#database, () => {
      for (const table of this.#tables) this.#database.exec(`drop table ${copyOf(copy, table)}`);
    });
  }

  /** Adds the rows that were written since the last call to what differs from each copy. */
  #note(): void {
    const written = this.#written.take();
    for (const noted of this.#differing.values()) noted.addAll(written);
  }

  #restore(copy: number, table: KeptTable, rows: NotedRows): readonly RestoredRow[] | "many" {
    const { keys, size } = rows;
    if (keys === undefined || (size > singlyMax && size > this.#sizeOf(copy, table) / 2)) {
      this.#written.unwatch(table);
      bringAll(this.#database, copy, table);
      this.#written.watch(table);
      return "many";
    }
    return this.#restoreSingly(copy, table, [...keys]);
  }

  #restoreSingly(copy: number, table: KeptTable, keys: readonly RowKey[]): readonly RestoredRow[] | "many" {
    const name = `main.${quoted(table.name)}`;
    const is = table.key.map((column) => `${quoted(column)} = ?`).join(" and ");
    const inCopy = table.hasHiddenKey ? `${rowidColumn} = ?` : is;
    const select = this.#database.prepare(`select * from ${name} where ${is}`);
    const remove = this.#database.prepare(`delete from ${name} where ${is}`);
    const insert = this.#database.prepare(`${bringing(copy, table)} where ${inCopy}`);
    const isListed = keys.length <= listedMax;
    const listed: RestoredRow[] = [];
    const addToList = (key: RowKey): void => {
      const row = isListed ? select.get(...key) : undefined;
      if (row !== undefined) listed.push(row);
    };
    for (const key of keys) {
      addToList(key);
      remove.run(...key);
    }
    for (const key of keys) {
      insert.run(...key);
      addToList(key);
    }
    return isListed ? listed : "many";
  }

  #sizeOf(copy: number, table: KeptTable): number {
    return Number(
      this.#database.prepare(`select count(*) as rows from ${copyOf(copy, table)}`).get()!["rows"],
    );
  }
}

const copyOf = (copy: number, { name }: KeptTable): string => `kept.${quoted(`${copy} ${name}`)}`;

/** Replaces all rows of a table by those of a copy. */
function bringAll(database: DatabaseSync, copy: number, table: KeptTable): void {
  database.exec(`delete from main.${quoted(table.name)}`);
  database.exec(bringing(copy, table));
}

/** The statement that inserts the rows of a copy. */
function bringing(copy: number, table: KeptTable): string {
  const { columns, hasHiddenKey } = table;
  const into = `${hasHiddenKey ? "rowid, " : ""}${listOf(columns)}`;
  const from = `${hasHiddenKey ? `${rowidColumn}, ` : ""}${listOf(columns)}`;
  return `insert into main.${quoted(table.name)} (${into}) select ${from} from ${copyOf(copy, table)}`;
}
