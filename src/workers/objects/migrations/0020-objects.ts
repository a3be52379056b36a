import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Namespaces of Durable Objects, and the tags of scripts' migrations. */
export const objects: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("scripts").addColumn("migration_tag", "text").execute();
    await db.schema
      .createTable("object_namespaces")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("account_id", "text", (c) => c.notNull().references("accounts.id").onDelete("cascade"))
      .addColumn("script_id", "text", (c) => c.references("scripts.id").onDelete("cascade"))
      .addColumn("class_name", "text", (c) => c.notNull())
      .addColumn("sqlite", "integer", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .addUniqueConstraint("object_namespaces_class", ["script_id", "class_name"])
      .execute();
    await db.schema
      .createIndex("object_namespaces_account")
      .on("object_namespaces")
      .column("account_id")
      .execute();
  },
};
