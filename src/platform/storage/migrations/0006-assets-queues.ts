import { sql, type Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Static assets and their manifests, queues with their messages, schedules, and tails. */
export const assetsQueues = (engine: "sqlite" | "postgres"): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    const bytes = engine === "postgres" ? ("bytea" as const) : ("blob" as const);
    const serial = engine === "postgres" ? sql`bigserial` : ("integer" as const);

    await db.schema
      .createTable("asset_files")
      .addColumn("scope", "text", (c) => c.notNull())
      .addColumn("hash", "text", (c) => c.notNull())
      .addColumn("size_bytes", "integer", (c) => c.notNull())
      .addColumn("content_type", "text")
      .addColumn("blob_key", "text", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .addPrimaryKeyConstraint("asset_files_scope_hash", ["scope", "hash"])
      .execute();
    await db.schema
      .createTable("asset_manifests")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("scope", "text", (c) => c.notNull())
      .addColumn("entries", "text", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .execute();

    await db.schema
      .createTable("queues")
      .addColumn("number", serial, (c) =>
        engine === "postgres" ? c.primaryKey() : c.primaryKey().autoIncrement(),
      )
      .addColumn("id", "text", (c) => c.notNull().unique())
      .addColumn("account_id", "text", (c) => c.notNull().references("accounts.id").onDelete("cascade"))
      .addColumn("name", "text", (c) => c.notNull())
      .addColumn("settings", "text", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .addColumn("modified_on", "bigint", (c) => c.notNull())
      .addUniqueConstraint("queues_account_name", ["account_id", "name"])
      .execute();
    await db.schema
      .createTable("queue_consumers")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("queue_number", "bigint", (c) =>
        c.notNull().unique().references("queues.number").onDelete("cascade"),
      )
      .addColumn("type", "text", (c) => c.notNull())
      .addColumn("script_name", "text")
      .addColumn("dead_letter_queue", "text")
      .addColumn("settings", "text", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .execute();
    // The most used table, with small integer keys, oldest first.
    await db.schema
      .createTable("queue_messages")
      .addColumn("number", serial, (c) =>
        engine === "postgres" ? c.primaryKey() : c.primaryKey().autoIncrement(),
      )
      .addColumn("queue_number", "bigint", (c) => c.notNull().references("queues.number").onDelete("cascade"))
      .addColumn("id", "text", (c) => c.notNull())
      .addColumn("content_type", "text", (c) => c.notNull())
      .addColumn("body", bytes, (c) => c.notNull())
      .addColumn("attempts", "integer", (c) => c.notNull())
      .addColumn("available_on", "bigint", (c) => c.notNull())
      .addColumn("lease", "text")
      .addColumn("sent_on", "bigint", (c) => c.notNull())
      .execute();
    await db.schema
      .createIndex("queue_messages_available")
      .on("queue_messages")
      .columns(["queue_number", "available_on", "number"])
      .execute();

    // To find messages that expire.
    await db.schema
      .createIndex("queue_messages_sent")
      .on("queue_messages")
      .columns(["queue_number", "sent_on"])
      .execute();

    await db.schema
      .createTable("schedules")
      .addColumn("account_id", "text", (c) => c.notNull().references("accounts.id").onDelete("cascade"))
      .addColumn("script_name", "text", (c) => c.notNull())
      .addColumn("cron", "text", (c) => c.notNull())
      .addColumn("last_run_on", "bigint", (c) => c.notNull())
      .addColumn("missed_runs", "integer", (c) => c.notNull())
      .addColumn("last_missed_on", "bigint")
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .addColumn("modified_on", "bigint", (c) => c.notNull())
      .addPrimaryKeyConstraint("schedules_script_cron", ["account_id", "script_name", "cron"])
      .execute();

    // Tails, and events from other nodes for them, for nodes that share a database.
    await db.schema
      .createTable("tails")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("account_id", "text", (c) => c.notNull())
      .addColumn("script_id", "text")
      .addColumn("filters", "text", (c) => c.notNull())
      .addColumn("secret_hash", "text", (c) => c.notNull())
      .addColumn("expires_on", "bigint", (c) => c.notNull())
      .addColumn("holder", "text", (c) => c.notNull())
      .addColumn("is_connected", "integer", (c) => c.notNull())
      .addColumn("seen_on", "bigint", (c) => c.notNull())
      .execute();
    await db.schema
      .createTable("tail_events")
      .addColumn("number", serial, (c) =>
        engine === "postgres" ? c.primaryKey() : c.primaryKey().autoIncrement(),
      )
      .addColumn("tail_id", "text", (c) => c.notNull().references("tails.id").onDelete("cascade"))
      .addColumn("event", "text", (c) => c.notNull())
      .execute();
  },
});
