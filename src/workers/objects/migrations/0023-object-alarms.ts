import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** When Durable Objects have to be asked for their alarms. */
export const objectAlarms: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("object_alarms")
      .addColumn("namespace_id", "text", (c) =>
        c.notNull().references("object_namespaces.id").onDelete("cascade"),
      )
      .addColumn("object_id", "text", (c) => c.notNull())
      .addColumn("due", "bigint", (c) => c.notNull())
      .addColumn("retries", "integer", (c) => c.notNull())
      .addColumn("origin", "text", (c) => c.notNull())
      .addPrimaryKeyConstraint("object_alarms_key", ["namespace_id", "object_id"])
      .execute();
  },
};
