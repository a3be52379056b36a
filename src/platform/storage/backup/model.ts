import { Kysely, sql } from "kysely";
import type { Database } from "../schema.ts";
import { migrate } from "../migrations/migrate.ts";
import { openSqlite, sqliteDialect } from "../sqlite.ts";

export type ColumnType = "text" | "integer" | "bytes";

/** A table that both engines have. */
export interface Table {
  name: string;
  /** In the order of the archive. */
  columns: readonly { name: string; type: ColumnType }[];
  /** Columns of the primary key, in its order. Rows are archived in this order. */
  key: readonly string[];
  /** Whether the key is one integer that the database generates. */
  isNumbered: boolean;
  /** Whether SQLite remembers the highest number after its row was deleted. */
  remembersNumbers: boolean;
  /** Tables that its rows refer to. */
  parents: readonly string[];
}

/**
 * Tables that belong to running nodes, the location of the blobs, and the notes of the migrations. Tables that
 * only PostgreSQL has are for nodes that share a database (leases, the change log, blobs), and stay out too.
 */
export const leftOutTables: readonly string[] = [
  "blob_place",
  "kysely_migration",
  "kysely_migration_lock",
  "nodes",
  "schema_info",
  "tail_events",
  "tails",
];

/** Tables that only PostgreSQL has. */
export const postgresTables: readonly string[] = [
  "blob_chunks",
  "blobs",
  "change_head",
  "changes",
  "node_rates",
  "node_values",
  "object_log",
  "object_log_head",
  "object_nodes",
  "object_shards",
  "workflow_commands",
  "workflow_marks",
  "workflow_nodes",
  "workflow_shards",
];

/**
 * The archived tables of a schema version, sorted by name. They are read from an empty SQLite database with that
 * schema, so a new table is in the archive without a change here.
 */
export async function tablesOf(schema: string): Promise<Table[]> {
  const read = new Kysely<Database>({ dialect: sqliteDialect(openSqlite(":memory:")) });
  try {
    await migrate({ read, engine: "sqlite" }, schema);
    const { rows } = await sql<{ name: string; sql: string }>`
      select name, sql from sqlite_master where type = 'table' and name not like 'sqlite_%'
      order by name`.execute(read);
    const tables: Table[] = [];
    for (const row of rows) if (!leftOutTables.includes(row.name)) tables.push(await tableOf(read, row));
    return tables;
  } finally {
    await read.destroy();
  }
}

async function tableOf(read: Kysely<Database>, table: { name: string; sql: string }): Promise<Table> {
  const { rows: columns } = await sql<{ name: string; type: string; pk: number }>`
    select name, type, pk from pragma_table_info(${table.name}) order by cid`.execute(read);
  const { rows: parents } = await sql<{ table: string }>`
    select distinct "table" from pragma_foreign_key_list(${table.name})`.execute(read);
  const key = columns.filter(({ pk }) => pk > 0).toSorted((one, other) => one.pk - other.pk);
  return {
    name: table.name,
    columns: columns.map(({ name, type }) => ({ name, type: typeOf(type) })),
    key: key.map(({ name }) => name),
    isNumbered: key.length === 1 && typeOf(key[0]!.type) === "integer",
    remembersNumbers: /\bautoincrement\b/i.test(table.sql),
    parents: parents.map((row) => row.table).filter((name) => name !== table.name),
  };
}

const typeOf = (declared: string): ColumnType =>
  /blob/i.test(declared) ? "bytes" : /int/i.test(declared) ? "integer" : "text";

/** A table that only PostgreSQL has, and that has no parents. Its first column is its key. */
export const sharedTable = (name: string, columns: Table["columns"]): Table => ({
  name,
  columns,
  key: [columns[0]!.name],
  isNumbered: columns[0]!.type === "integer",
  remembersNumbers: false,
  parents: [],
});

/** The tables in an order in which parents come before the rows that refer to them. */
export function parentsFirst(tables: readonly Table[]): Table[] {
  const ordered: Table[] = [];
  const add = (table: Table): void => {
    if (ordered.includes(table)) return;
    for (const parent of tables) if (table.parents.includes(parent.name)) add(parent);
    ordered.push(table);
  };
  tables.forEach(add);
  return ordered;
}
