import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Databases of D1. The data of each one is in an object, whose namespace has the same id without hyphens. */
export const d1: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("d1_databases")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("account_id", "text", (c) => c.notNull().references("accounts.id").onDelete("cascade"))
      .addColumn("name", "text", (c) => c.notNull())
      .addColumn("location_hint", "text")
      .addColumn("jurisdiction", "text")
      .addColumn("read_replication", "text", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .addUniqueConstraint("d1_databases_name", ["account_id", "name"])
      .execute();
  },
};
