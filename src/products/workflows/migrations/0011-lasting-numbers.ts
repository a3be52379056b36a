import { sql, type Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/**
 * Tables whose integer keys other rows and memory refer to, and all columns that may refer to deleted rows.
 * New numbers must be above all of these values.
 */
const numbered = [
  { table: "workflows", named: ["workflow_versions.workflow_rid", "workflow_instances.workflow_rid"] },
  { table: "workflow_versions", named: ["workflow_instances.version_rid"] },
  { table: "workflow_instances", named: ["workflow_journal.rid", "workflow_events.rid"] },
];

/**
 * On SQLite a plain integer key is the highest key plus one, so the number of a deleted row could be reused.
 * AUTOINCREMENT prevents that. PostgreSQL's sequences never go back.
 */
export const lastingNumbers = (engine: "sqlite" | "postgres"): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    if (engine === "postgres") return;
    for (const { table } of numbered) await rebuild(db, table);
    for (const { table, named } of numbered) await countFrom(db, table, named);
    const { rows } = await sql`pragma foreign_key_check`.execute(db);
    if (rows.length > 0) throw new Error("Some rows would refer to rows that do not exist.");
  },
});

/**
 * Copies a table to one with AUTOINCREMENT, which SQLite cannot add to an existing table, and renames it
 * (sqlite.org/lang_altertable.html).
 */
async function rebuild(trx: Kysely<unknown>, table: string): Promise<void> {
  const { rows: parts } = await sql<{ type: string; sql: string | null }>`
    select type, sql from sqlite_master where tbl_name = ${table}`.execute(trx);
  const definition = parts.find(({ type }) => type === "table")!.sql!;
  if (/\bautoincrement\b/i.test(definition)) return;
  const copy = `${table}_copy`;
  const withKey = definition
    .replace(`"${table}"`, `"${copy}"`)
    .replace(/("rid" integer primary key)\b/i, "$1 autoincrement");
  await sql.raw(withKey).execute(trx);
  await sql.raw(`insert into "${copy}" select * from "${table}"`).execute(trx);
  await sql.raw(`drop table "${table}"`).execute(trx);
  await sql.raw(`alter table "${copy}" rename to "${table}"`).execute(trx);
  for (const { type, sql: text } of parts)
    if (type === "index" && text !== null) await sql.raw(text).execute(trx);
}

/** Sets the table's sequence above every number that is referenced anywhere. */
async function countFrom(trx: Kysely<unknown>, table: string, named: readonly string[]): Promise<void> {
  const highest = [`${table}.rid`, ...named].map((column) => {
    const [of, name] = column.split(".");
    return `(select coalesce(max("${name}"), 0) from "${of}")`;
  });
  const counted = `(select coalesce(max(seq), 0) from sqlite_sequence where name = '${table}')`;
  const { rows } = await sql
    .raw<{ seq: number }>(`select max(${[counted, ...highest].join(", ")}) as seq`)
    .execute(trx);
  await sql`delete from sqlite_sequence where name = ${table}`.execute(trx);
  await sql`insert into sqlite_sequence (name, seq) values (${table}, ${rows[0]!.seq})`.execute(trx);
}
