import { sql, type Kysely } from "kysely";
import type { Migration } from "kysely/migration";
import type { DatabaseEngine } from "../../../declaration.ts";

const needed = ["account_id", "id", "action_result", "action_type", "operation", "description", "actor_type"];
const resource = ["resource_product", "resource_scope", "resource_type"];
const optional = [
  ...["account_name", "user_id", "zone_id", "zone_name"],
  ...["actor_context", "actor_email", "actor_id", "actor_ip_address"],
  ...["actor_token_id", "actor_token_name"],
  ...["raw_cf_ray_id", "raw_method", "raw_uri", "raw_user_agent"],
  ...["resource_id", "request", "before"],
];

/** Entries of the audit log that have no index yet. Only SQLite writes there, but a backup is for both engines. */
export const auditLogTail = (engine: DatabaseEngine): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    let table = db.schema
      .createTable("audit_log_tail")
      .addColumn("number", engine === "postgres" ? sql`bigserial` : "integer", (c) => c.primaryKey());
    for (const name of [...needed, ...resource]) table = table.addColumn(name, "text", (c) => c.notNull());
    table = table.addColumn("raw_status_code", "integer");
    for (const name of optional) table = table.addColumn(name, "text");
    await table.execute();
  },
});
