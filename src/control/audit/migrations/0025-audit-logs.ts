import { sql, type Kysely } from "kysely";
import type { Migration } from "kysely/migration";
import type { DatabaseEngine } from "../../../declaration.ts";

/** The audit log. Without foreign keys: the entries outlive the accounts and zones that they name. */
export const auditLogs = (engine: DatabaseEngine): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    let table = db.schema
      .createTable("audit_logs")
      .addColumn("id", "text", (c) => c.primaryKey().notNull())
      .addColumn("action_result", "text", (c) => c.notNull())
      .addColumn("action_type", "text", (c) => c.notNull())
      .addColumn("operation", "text", (c) => c.notNull())
      .addColumn("description", "text", (c) => c.notNull())
      .addColumn("actor_type", "text", (c) => c.notNull())
      .addColumn("resource_product", "text", (c) => c.notNull())
      .addColumn("resource_scope", "text", (c) => c.notNull())
      .addColumn("resource_type", "text", (c) => c.notNull())
      .addColumn("raw_status_code", "integer");
    for (const name of [
      ...["account_id", "account_name", "user_id", "zone_id", "zone_name"],
      ...["actor_context", "actor_email", "actor_id", "actor_ip_address"],
      ...["actor_token_id", "actor_token_name"],
      ...["raw_cf_ray_id", "raw_method", "raw_uri", "raw_user_agent"],
      ...["resource_id", "request", "before"],
    ])
      table = table.addColumn(name, "text");
    // Saves a B-tree, because every change writes an entry.
    if (engine === "sqlite") table = table.modifyEnd(sql`without rowid`);
    await table.execute();
    for (const owner of ["account_id", "user_id"])
      await db.schema
        .createIndex(`audit_logs_${owner}`)
        .on("audit_logs")
        .columns([owner, "id"])
        .where(owner as never, "is not", null)
        .execute();
  },
});
