import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Snippets with their code (at most some tens of kilobytes each), and whether a zone has bot management. */
export const snippets: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("snippets")
      .addColumn("zone_id", "text", (c) => c.notNull().references("zones.id").onDelete("cascade"))
      .addColumn("name", "text", (c) => c.notNull())
      .addColumn("version", "text", (c) => c.notNull())
      .addColumn("main_module", "text", (c) => c.notNull())
      .addColumn("modules", "text", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .addColumn("modified_on", "bigint", (c) => c.notNull())
      .addPrimaryKeyConstraint("snippets_zone_name", ["zone_id", "name"])
      .execute();

    await db.schema
      .createTable("bot_management")
      .addColumn("zone_id", "text", (c) => c.primaryKey().references("zones.id").onDelete("cascade"))
      .addColumn("is_enabled", "integer", (c) => c.notNull())
      .addColumn("modified_on", "bigint", (c) => c.notNull())
      .execute();
  },
};
