import { sql, type Kysely } from "kysely";
import { Migrator, type Migration } from "kysely/migration";
import type { DatabaseEngine, LoadMigration } from "../../../declaration.ts";
import { declarations } from "../../../declarations.ts";
import { UnusableDatabase } from "../faults.ts";
import type { Database } from "../schema.ts";
import type { Storage } from "../storage.ts";
import { isOlder, programVersion } from "../program-version.ts";

type Connected = Pick<Storage, "read" | "engine">;

const declared: Readonly<Record<string, LoadMigration>> = Object.fromEntries(
  declarations.flatMap(({ migrations }) => Object.entries(migrations)),
);
/** The names of all migrations, in order. A database's schema version is the name of the last one that ran there. */
export const schemaVersions: readonly string[] = Object.keys(declared).toSorted();

/** The migrations by their names. Each is loaded when it runs. */
function migrationsOf(engine: DatabaseEngine): Record<string, Migration> {
  const migrationOf = (load: LoadMigration): Migration => ({
    async up(db) {
      const loaded = await load();
      await (typeof loaded === "function" ? loaded(engine) : loaded).up(db);
    },
  });
  return Object.fromEntries(schemaVersions.map((name) => [name, migrationOf(declared[name]!)]));
}

/** The key of the advisory lock of migrations. Any number that no other lock uses would do. */
const lockKey = 7_353_561;

export const currentSchema = schemaVersions.at(-1)!;

/**
 * The oldest program that works with the current schema. A migration that older programs cannot live with
 * (the contracting one, see docs/upgrades.md) raises it to the version that releases the migration.
 */
const oldestProgram = "0.1.0";

/** The schema of a database. */
export interface SchemaInfo {
  writtenBy: string;
  oldestProgram: string;
}

/**
 * Migrates the schema up to a version, by default the current one. Everything happens in one transaction, so
 * a process that dies leaves the schema as it was. A lock lets only one starting node migrate at a time. The
 * schema of a newer program stays unchanged; throws if this program is too old for it.
 */
export async function migrate(storage: Connected, to = currentSchema): Promise<void> {
  const applied = await appliedMigrations(storage);
  const newer = applied.filter((name) => !schemaVersions.includes(name));
  if (newer.length > 0) return refuseIfTooOld(storage, newer.at(-1)!);
  if (applied.length < schemaVersions.length) await migrateUp(storage, to);
  if (to === currentSchema) await noteSchema(storage);
}

async function migrateUp({ read: db, engine }: Connected, to: string): Promise<void> {
  const error = engine === "sqlite" ? await migrateSqlite(db, to) : await migratePostgres(db, to);
  if (error !== undefined) throw new Error("The migration of the database schema failed.", { cause: error });
}

const migrator = (db: Kysely<Database>, engine: DatabaseEngine): Migrator =>
  new Migrator({ db, provider: { getMigrations: async () => migrationsOf(engine) } });

/** Resolves with the error of a migration, if there was one. */
async function migrateSqlite(db: Kysely<Database>, to: string): Promise<unknown> {
  // To change a column, SQLite needs a new table in place of the old one. With foreign keys, dropping the old
  // one would delete the rows that refer to it. The pragma has no effect inside the transaction.
  await sql`pragma foreign_keys = off`.execute(db);
  const { error } = await migrator(db, "sqlite").migrateTo(to);
  await sql`pragma foreign_keys = on`.execute(db);
  return error;
}

/** The lock ends with the transaction, so that it also holds behind a pooler of transactions. */
async function migratePostgres(db: Kysely<Database>, to: string): Promise<unknown> {
  try {
    await db.transaction().execute(async (transaction) => {
      await sql`select pg_advisory_xact_lock(${sql.lit(lockKey)})`.execute(transaction);
      const { error } = await migrator(transaction, "postgres").migrateTo(to);
      if (error !== undefined) throw error;
    });
    return undefined;
  } catch (error) {
    return error;
  }
}

/** The names of the migrations that have run, in order; none in an empty database. */
export async function appliedMigrations(storage: Connected): Promise<string[]> {
  if (!(await hasTable(storage, "kysely_migration"))) return [];
  const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(storage.read);
  return rows.map(({ name }) => name).toSorted();
}

export async function schemaInfoOf(storage: Connected): Promise<SchemaInfo | undefined> {
  if (!(await hasTable(storage, "schema_info"))) return undefined;
  const { rows } = await sql<SchemaInfo>`
    select written_by as "writtenBy", oldest_program as "oldestProgram" from schema_info
    order by schema desc`.execute(storage.read);
  return rows[0];
}

async function hasTable({ read, engine }: Connected, name: string): Promise<boolean> {
  const { rows } =
    engine === "sqlite"
      ? await sql`select 1 from sqlite_master where name = ${name}`.execute(read)
      : await sql`select 1 where to_regclass(${name}) is not null`.execute(read);
  return rows.length > 0;
}

async function noteSchema({ read }: Connected): Promise<void> {
  await sql`insert into schema_info (schema, written_by, oldest_program)
    values (${currentSchema}, ${programVersion}, ${oldestProgram}) on conflict do nothing`.execute(read);
}

/** Throws unless this program works with a schema that is newer than its own. */
async function refuseIfTooOld(storage: Connected, schema: string): Promise<void> {
  const info = await schemaInfoOf(storage);
  if (info !== undefined && !isOlder(programVersion, info.oldestProgram)) return;
  throw new UnusableDatabase(tooNew("The database", schema, info));
}

/** The message about a schema that this program does not know. */
export function tooNew(what: string, schema: string, info: SchemaInfo | undefined): string {
  const by = info === undefined ? "" : `, written by Selvedge ${info.writtenBy}`;
  const install = info === undefined ? "a newer Selvedge" : `Selvedge ${info.oldestProgram} or newer`;
  return (
    `${what} has the schema ${schema}${by}, but this is Selvedge ${programVersion}, ` +
    `which knows schemas up to ${currentSchema}. Install ${install}.`
  );
}
