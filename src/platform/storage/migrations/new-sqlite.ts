import type { DatabaseSync } from "node:sqlite";
import { inTransaction } from "../sqlite.ts";

/**
 * Creates the current schema in a SQLite database that has none. Leaves other databases to the migrations, and all of
 * them if `versions` are not those of sqlite-schema.json, which `npm run generate` makes by running the migrations.
 */
export async function createSchema(database: DatabaseSync, versions: readonly string[]): Promise<void> {
  if (database.prepare("select 1 from sqlite_master limit 1").get() !== undefined) return;
  const { default: schema } = await import("./sqlite-schema.json", { with: { type: "json" } });
  if (schema.versions.join() !== versions.join()) return;
  inTransaction(database, () => {
    database.exec(schema.statements.join(";\n"));
    const insert = database.prepare(
      "insert into kysely_migration (name, timestamp) values (?, strftime('%Y-%m-%dT%H:%M:%fZ'))",
    );
    for (const name of versions) insert.run(name);
  });
}
