import { sql } from "kysely";
import { Migrator, type Migration } from "kysely/migration";
import { initial } from "./0001-initial.ts";
import { images } from "./0004-images.ts";
import { workflows } from "./0005-workflows.ts";
import { assetsQueues } from "./0006-assets-queues.ts";
import { scripts } from "./0003-scripts.ts";
import { snippets } from "./0002-snippets.ts";
import { dnssec } from "./0007-dnssec.ts";
import { tls } from "./0008-tls.ts";
import { unusedBlobs } from "./0009-unused-blobs.ts";
import { workflowSchedules } from "./0010-workflow-schedules.ts";
import { lastingNumbers } from "./0011-lasting-numbers.ts";
import { zoneAuthority } from "./0012-zone-authority.ts";
import { queueLeases } from "./0013-queue-leases.ts";
import { members } from "./0014-members.ts";
import { schemaInfo } from "./0015-schema-info.ts";
import { blobs } from "./0016-blobs.ts";
import { changeHead } from "./0017-change-head.ts";
import { nodes } from "./0018-nodes.ts";
import { tailCreators } from "./0019-tail-creators.ts";
import { objects } from "./0020-0039/0020-objects.ts";
import { d1 } from "./0020-0039/0021-d1.ts";
import { UnusableDatabase } from "../faults.ts";
import type { Storage } from "../storage.ts";
import { isOlder, programVersion } from "../program-version.ts";

type Engine = Storage["engine"];
type Connected = Pick<Storage, "read" | "engine">;

/** In order. A database's schema version is the name of the last one that ran there. */
const migrationsOf = (engine: Engine): Record<string, Migration> => ({
  "0001-initial": initial(engine),
  "0002-snippets": snippets,
  "0003-scripts": scripts(engine),
  "0004-images": images,
  "0005-workflows": workflows(engine),
  "0006-assets-queues": assetsQueues(engine),
  "0007-dnssec": dnssec,
  "0008-tls": tls,
  "0009-unused-blobs": unusedBlobs(engine),
  "0010-workflow-schedules": workflowSchedules,
  "0011-lasting-numbers": lastingNumbers(engine),
  "0012-zone-authority": zoneAuthority,
  "0013-queue-leases": queueLeases,
  "0014-members": members,
  "0015-schema-info": schemaInfo,
  "0016-blobs": blobs(engine),
  "0017-change-head": changeHead(engine),
  "0018-nodes": nodes(engine),
  "0019-tail-creators": tailCreators,
  "0020-objects": objects,
  "0021-d1": d1,
});
export const schemaVersions: readonly string[] = Object.keys(migrationsOf("sqlite"));
export const currentSchema = schemaVersions.at(-1)!;

/**
 * The oldest program that works with the current schema. A migration that older programs cannot live with
 * (the contracting one, see docs/upgrades.md) raises it to the version that releases the migration.
 */
const oldestProgram = "0.1.0";

/** What a database says about its schema. */
export interface SchemaInfo {
  writtenBy: string;
  oldestProgram: string;
}

/**
 * Migrates the schema up to a version, by default the current one. Everything happens in one transaction, so a
 * process that dies leaves the schema as it was. Kysely locks the database, so that only one starting node
 * migrates at a time. A schema of a newer program stays as it is, or is refused if this program is too old.
 */
export async function migrate(storage: Connected, to = currentSchema): Promise<void> {
  const newer = (await appliedMigrations(storage)).filter((name) => !schemaVersions.includes(name));
  if (newer.length > 0) return refuseIfTooOld(storage, newer.at(-1)!);

  const { read: db, engine } = storage;
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrationsOf(engine) } });
  // To change a column, SQLite needs a new table in place of the old one. With foreign keys, dropping the old
  // one would delete the rows that refer to it. The pragma has no effect inside the transaction.
  if (engine === "sqlite") await sql`pragma foreign_keys = off`.execute(db);
  const { error } = await migrator.migrateTo(to);
  if (engine === "sqlite") await sql`pragma foreign_keys = on`.execute(db);
  if (error !== undefined) throw new Error("The migration of the database schema failed.", { cause: error });
  if (to === currentSchema) await noteSchema(storage);
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
