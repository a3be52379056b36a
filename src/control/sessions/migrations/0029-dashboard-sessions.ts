import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Sign-ins at the console. */
export const dashboardSessions: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("dashboard_sessions")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("token_id", "text", (c) => c.notNull().references("api_tokens.id").onDelete("cascade"))
      .addColumn("token_hash", "text", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .addColumn("last_used_on", "bigint", (c) => c.notNull())
      .execute();
    await db.schema
      .createIndex("dashboard_sessions_token")
      .on("dashboard_sessions")
      .columns(["token_id", "created_on"])
      .execute();
  },
};
