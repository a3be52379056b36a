import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Restores that Durable Objects have asked for. */
export const objectRestores: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("object_restores")
      .addColumn("namespace_id", "text", (c) =>
        c.notNull().references("object_namespaces.id").onDelete("cascade"),
      )
      .addColumn("object_id", "text", (c) => c.notNull())
      .addColumn("undo", "text", (c) => c.notNull())
      .addColumn("target", "text", (c) => c.notNull())
      .addColumn("before", "text")
      .addColumn("is_done", "integer", (c) => c.notNull())
      .addPrimaryKeyConstraint("object_restores_key", ["namespace_id", "object_id", "undo"])
      .execute();
  },
};
