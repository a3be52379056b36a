import { Kysely, sql, type Transaction } from "kysely";
import { UnusableDatabase } from "../faults.ts";
import { appliedMigrations, currentSchema, migrate } from "../migrations/migrate.ts";
import { postgresDialect } from "../postgres.ts";
import type { Database } from "../schema.ts";
import { BackupError } from "../archive/errors.ts";
import { leftOutTables, postgresTables, tablesOf, type Table } from "./model.ts";
import { columnsOf, quoted } from "./source.ts";
import type { Loader, Target } from "./target.ts";

/** The row in `meta` of a database whose restore has not finished. */
const marker = "restoring";
const parametersMax = 65_535;

/** A PostgreSQL database. All rows are inserted in one transaction. */
export function postgresTarget(url: string): Target {
  const read = new Kysely<Database>({ dialect: postgresDialect(url, undefined) });
  const connected = { read, engine: "postgres" as const };
  return {
    async refuseUnlessEmpty(tables) {
      if (await isUnfinished(read)) return;
      const hasSchema = (await appliedMigrations(connected)).length > 0;
      const filled = await (hasSchema ? firstFilled(read, tables) : firstTable(read));
      if (filled !== undefined)
        throw new BackupError(
          `Expected an empty database but it has ${filled}. Restore into a new database, ` +
            "and remove the old one when the new one works.",
        );
    },
    async prepare(schema) {
      // The remains of an unfinished restore, or an empty database of a schema that may be newer than the backup's.
      await dropTables(read);
      await migrate(connected, schema);
      await sql`insert into meta (key, value) values (${marker}, '') on conflict do nothing`.execute(read);
    },
    async load(work) {
      await read.transaction().execute(async (trx) => {
        await work(loaderOf(trx));
      });
    },
    migrate: async () => migrate(connected),
    async finish() {
      await sql`delete from meta where key = ${marker}`.execute(read);
    },
    close: async () => read.destroy(),
  };
}

/** Throws if a restore into the database has not finished. */
export async function refuseUnfinishedRestore(read: Kysely<Database>): Promise<void> {
  if (await isUnfinished(read))
    throw new UnusableDatabase(
      "A restore into this database did not finish. Run selvedge restore again with this database.",
    );
}

async function isUnfinished(read: Kysely<Database>): Promise<boolean> {
  const { rows: tables } = await sql`select 1 where to_regclass('meta') is not null`.execute(read);
  if (tables.length === 0) return false;
  const { rows } = await sql`select 1 from meta where key = ${marker}`.execute(read);
  return rows.length > 0;
}

/** Drops the platform's tables. Call it only if they are empty, or a restore has begun to fill them. */
async function dropTables(read: Kysely<Database>): Promise<void> {
  const archived = (await tablesOf(currentSchema)).map(({ name }) => name);
  await read.transaction().execute(async (trx) => {
    for (const name of [...archived, ...leftOutTables, ...postgresTables])
      await sql`drop table if exists ${sql.table(name)} cascade`.execute(trx);
  });
}

async function firstFilled(read: Kysely<Database>, tables: readonly Table[]): Promise<string | undefined> {
  for (const { name } of tables) {
    const where = name === "meta" ? sql`where key <> ${marker}` : sql``;
    const { rows } = await sql`select 1 from ${sql.table(name)} ${where} limit 1`.execute(read);
    if (rows.length > 0) return `rows in the table ${name}`;
  }
  return undefined;
}

async function firstTable(read: Kysely<Database>): Promise<string | undefined> {
  const { rows } = await sql<{ name: string }>`
    select table_name as name from information_schema.tables
    where table_schema = current_schema() limit 1`.execute(read);
  return rows[0] && `the table ${rows[0].name}`;
}

const loaderOf = (trx: Transaction<Database>): Loader => ({
  async insert(table, rows) {
    const rowsMax = Math.floor(parametersMax / table.columns.length);
    for (let at = 0; at < rows.length; at += rowsMax) {
      const values = rows
        .slice(at, at + rowsMax)
        .map((row) => sql`(${sql.join(table.columns.map(({ name }) => row[name]))})`);
      const into = sql.raw(`insert into ${quoted(table.name)} (${columnsOf(table)})`);
      await sql`${into} values ${sql.join(values)}`.execute(trx).catch((error: unknown) => {
        throw new BackupError(`PostgreSQL refused rows of the table ${table.name}.`, { cause: error });
      });
    }
  },
  async countFrom(table, highest) {
    const sequence = sql`pg_get_serial_sequence(${table.name}, ${table.key[0]})`;
    await sql`select setval(${sequence}, ${Math.max(highest, 1)}, ${highest > 0})`.execute(trx);
  },
});
