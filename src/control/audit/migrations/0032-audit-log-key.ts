import { sql, type Kysely } from "kysely";
import type { Migration } from "kysely/migration";
import type { DatabaseEngine } from "../../../declaration.ts";

/**
 * The key of the audit log begins with the account, so that no index of its own does. An entry of no account has an empty one,
 * because a key has no nulls. On SQLite, the rows have numbers again: in a table without them, each row above 1002 bytes has a
 * page of its own, which every change would write.
 */
export const auditLogKey = (engine: DatabaseEngine): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    await (engine === "sqlite" ? makeAgain(db) : changeKey(db));
  },
});

async function changeKey(db: Kysely<unknown>): Promise<void> {
  await sql`update audit_logs set account_id = '' where account_id is null`.execute(db);
  await db.schema
    .alterTable("audit_logs")
    .alterColumn("account_id", (c) => c.setNotNull())
    .execute();
  await db.schema.alterTable("audit_logs").dropConstraint("audit_logs_pkey").execute();
  await db.schema.dropIndex("audit_logs_account_id").execute();
  await db.schema
    .alterTable("audit_logs")
    .addPrimaryKeyConstraint("audit_logs_pkey", ["account_id", "id"])
    .execute();
}

const texts = ["action_result", "action_type", "operation", "description", "actor_type"];
const resourceTexts = ["resource_product", "resource_scope", "resource_type"];
const optional = [
  ...["account_name", "user_id", "zone_id", "zone_name"],
  ...["actor_context", "actor_email", "actor_id", "actor_ip_address"],
  ...["actor_token_id", "actor_token_name"],
  ...["raw_cf_ray_id", "raw_method", "raw_uri", "raw_user_agent"],
  ...["resource_id", "request", "before"],
];

/** SQLite cannot change a key. */
async function makeAgain(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable("audit_logs").renameTo("audit_logs_before").execute();
  let table = db.schema
    .createTable("audit_logs")
    .addColumn("account_id", "text", (c) => c.notNull())
    .addColumn("id", "text", (c) => c.notNull());
  for (const name of [...texts, ...resourceTexts]) table = table.addColumn(name, "text", (c) => c.notNull());
  table = table.addColumn("raw_status_code", "integer");
  for (const name of optional) table = table.addColumn(name, "text");
  await table.addPrimaryKeyConstraint("audit_logs_key", ["account_id", "id"] as never).execute();
  const others = sql.join(
    ["id", ...texts, ...resourceTexts, "raw_status_code", ...optional].map((name) => sql.ref(name)),
  );
  await sql`insert into audit_logs (account_id, ${others})
    select coalesce(account_id, ''), ${others} from audit_logs_before order by 1, id`.execute(db);
  await db.schema.dropTable("audit_logs_before").execute();
  await db.schema
    .createIndex("audit_logs_user_id")
    .on("audit_logs")
    .columns(["user_id", "id"])
    .where("user_id" as never, "is not", null)
    .execute();
}
