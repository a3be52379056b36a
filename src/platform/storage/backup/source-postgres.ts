import { Kysely, sql } from "kysely";
import type { Database } from "../schema.ts";
import { appliedMigrations } from "../migrations/migrate.ts";
import { postgresDialect } from "../postgres.ts";
import type { Table } from "./model.ts";
import { Pace } from "./pace.ts";
import type { Row } from "./rows.ts";
import { batchBytes, rowBytes, columnsOf, quoted, type Snapshot, type Source } from "./source.ts";

const rowsPerFetchMax = 5000;

/** Reads a PostgreSQL database. The snapshot is one read-only transaction, which holds up no writer. */
export function postgresSource(url: string): Source {
  const read = new Kysely<Database>({ dialect: postgresDialect(url, undefined) });
  const pace = new Pace();
  return {
    engine: "postgres",
    pace,
    schemas: async () => appliedMigrations({ read, engine: "postgres" }),
    snapshot: async (work) =>
      read
        .transaction()
        .setIsolationLevel("repeatable read")
        .setAccessMode("read only")
        .execute(async (trx) => {
          await sql`select 1 from kysely_migration`.execute(trx); // the first query fixes the point in time
          return work(snapshotOf(trx, pace));
        }),
    async current(table, like) {
      const where = table.key.map((name) => sql`${sql.ref(name)} = ${like[name]}`);
      const { rows } = await sql<Row>`
        select ${sql.raw(columnsOf(table))} from ${sql.table(table.name)}
        where ${sql.join(where, sql` and `)}`.execute(read);
      return rows[0];
    },
    close: async () => read.destroy(),
  };
}

const snapshotOf = (trx: Kysely<Database>, pace: Pace): Snapshot => ({
  async *rows(table: Table) {
    // Text is compared by its bytes, as SQLite does.
    const order = table.key
      .map((name) => (isText(table, name) ? `${quoted(name)} collate "C"` : quoted(name)))
      .join(", ");
    const query = `select ${columnsOf(table)} from ${quoted(table.name)} order by ${order}`;
    await sql.raw(`declare archived no scroll cursor for ${query}`).execute(trx);
    for (let count = 16; ;) {
      const { rows } = await sql.raw<Row>(`fetch forward ${count} from archived`).execute(trx);
      if (rows.length === 0) break;
      yield rows;
      await pace.rest();
      const bytes = rows.reduce((total, row) => total + rowBytes(row), 0);
      count = Math.max(1, Math.min(rowsPerFetchMax, 4 * count, Math.floor((batchBytes * count) / bytes)));
    }
    await sql`close archived`.execute(trx);
  },
  async highestNumber(table) {
    const key = table.key[0]!;
    const { rows } = await sql<{ highest: number; sequence: string | null }>`
      select coalesce(max(${sql.ref(key)}), 0) as highest,
        pg_get_serial_sequence(${table.name}, ${key}) as sequence
      from ${sql.table(table.name)}`.execute(trx);
    const { highest, sequence } = rows[0]!;
    if (sequence === null) return highest;
    const { rows: counted } = await sql
      .raw<{ last: number; called: boolean }>(
        `select last_value as last, is_called as called from ${sequence}`,
      )
      .execute(trx);
    return counted[0]!.called ? Math.max(highest, counted[0]!.last) : highest;
  },
});

const isText = (table: Table, column: string): boolean =>
  table.columns.find(({ name }) => name === column)!.type === "text";
