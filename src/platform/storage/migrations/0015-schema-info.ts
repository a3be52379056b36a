import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** One row: which program wrote the schema, and the oldest program that works with it; see migrate.ts. */
export const schemaInfo: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("schema_info")
      .addColumn("schema", "text", (c) => c.primaryKey())
      .addColumn("written_by", "text", (c) => c.notNull())
      .addColumn("oldest_program", "text", (c) => c.notNull())
      .execute();
  },
};
