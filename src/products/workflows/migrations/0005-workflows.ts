import type { ColumnDefinitionBuilder, Kysely } from "kysely";
import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Number of shards of instances, which nodes lease; see src/products/workflows/cluster/leases.ts. */
const shardCount = 64;

/**
 * Workflows, their versions, instances, and the journal. The journal is append-only, with a small integer key
 * and one index. Text keys made group commits at least six times slower (measured; see docs/decisions).
 */
export const workflows = (engine: "sqlite" | "postgres"): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    const serial = engine === "sqlite" ? "integer" : "bigserial";
    /** A number that is never reused, because other rows and memory refer to it. */
    const lasting = (c: ColumnDefinitionBuilder): ColumnDefinitionBuilder =>
      engine === "sqlite" ? c.primaryKey().autoIncrement() : c.primaryKey();
    await db.schema
      .createTable("workflows")
      .addColumn("rid", serial, lasting)
      .addColumn("id", "text", (c) => c.notNull().unique())
      .addColumn("account_id", "text", (c) => c.notNull().references("accounts.id").onDelete("cascade"))
      .addColumn("name", "text", (c) => c.notNull())
      .addColumn("script_name", "text", (c) => c.notNull())
      .addColumn("class_name", "text", (c) => c.notNull())
      .addColumn("steps_max", "integer")
      .addColumn("success_retention_ms", "bigint")
      .addColumn("error_retention_ms", "bigint")
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .addColumn("modified_on", "bigint", (c) => c.notNull())
      .addUniqueConstraint("workflows_account_name", ["account_id", "name"])
      .execute();

    await db.schema
      .createTable("workflow_versions")
      .addColumn("rid", serial, lasting)
      .addColumn("id", "text", (c) => c.notNull().unique())
      .addColumn("workflow_rid", "bigint", (c) => c.notNull().references("workflows.rid").onDelete("cascade"))
      .addColumn("script_name", "text", (c) => c.notNull())
      .addColumn("script_version", "text", (c) => c.notNull())
      .addColumn("class_name", "text", (c) => c.notNull())
      .addColumn("steps_max", "integer")
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .execute();
    await db.schema
      .createIndex("workflow_versions_workflow")
      .on("workflow_versions")
      .columns(["workflow_rid", "rid"])
      .execute();

    await db.schema
      .createTable("workflow_settings")
      .addColumn("account_id", "text", (c) => c.primaryKey().references("accounts.id").onDelete("cascade"))
      .addColumn("success_retention_ms", "bigint")
      .addColumn("error_retention_ms", "bigint")
      .execute();

    await db.schema
      .createTable("workflow_instances")
      .addColumn("rid", serial, lasting)
      .addColumn("shard", "integer", (c) => c.notNull())
      .addColumn("account_id", "text", (c) => c.notNull())
      .addColumn("workflow_rid", "bigint", (c) => c.notNull())
      .addColumn("id", "text", (c) => c.notNull())
      .addColumn("trigger", "text", (c) => c.notNull())
      .addColumn("params", "text", (c) => c.notNull())
      .addColumn("success_retention_ms", "bigint", (c) => c.notNull())
      .addColumn("error_retention_ms", "bigint", (c) => c.notNull())
      .addColumn("status", "text", (c) => c.notNull())
      .addColumn("run", "integer", (c) => c.notNull())
      .addColumn("version_rid", "bigint", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .addColumn("modified_on", "bigint", (c) => c.notNull())
      .addColumn("started_on", "bigint")
      .addColumn("ended_on", "bigint")
      .addColumn("paused_on", "bigint")
      .addColumn("wake_on", "bigint")
      .addColumn("expires_on", "bigint")
      .addColumn("crashes", "integer", (c) => c.notNull())
      .addColumn("output", "text")
      .addColumn("error", "text")
      .execute();
    const index = (name: string, columns: string, where = ""): Promise<unknown> =>
      sql.raw(`create index ${name} on workflow_instances (${columns}) ${where}`).execute(db);
    await sql`create unique index workflow_instances_id on workflow_instances (workflow_rid, id)`.execute(db);
    await index("workflow_instances_list", "workflow_rid, rid");
    await index("workflow_instances_status", "workflow_rid, status, rid");
    await index("workflow_instances_live", "rid", "where status in ('queued', 'running', 'waitingForPause')");
    await index("workflow_instances_wake", "wake_on", "where wake_on is not null");
    await index("workflow_instances_expiry", "expires_on", "where expires_on is not null");

    await db.schema
      .createTable("workflow_journal")
      .addColumn("seq", serial, (c) => c.primaryKey())
      .addColumn("rid", "bigint", (c) => c.notNull())
      .addColumn("run", "integer", (c) => c.notNull())
      .addColumn("kind", "text", (c) => c.notNull())
      .addColumn("key", "text", (c) => c.notNull())
      .addColumn("attempt", "integer", (c) => c.notNull())
      .addColumn("at", "bigint", (c) => c.notNull())
      .addColumn("started_on", "bigint")
      .addColumn("due", "bigint")
      .addColumn("value", "text")
      .addColumn("error", "text")
      .addColumn("config", "text")
      .execute();
    await db.schema
      .createIndex("workflow_journal_instance")
      .on("workflow_journal")
      .columns(["rid", "seq"])
      .execute();

    await db.schema
      .createTable("workflow_events")
      .addColumn("seq", serial, (c) => c.primaryKey())
      .addColumn("rid", "bigint", (c) => c.notNull())
      .addColumn("number", "bigint", (c) => c.notNull())
      .addColumn("type", "text", (c) => c.notNull())
      .addColumn("payload", "text", (c) => c.notNull())
      .addColumn("at", "bigint", (c) => c.notNull())
      .execute();
    await db.schema
      .createIndex("workflow_events_instance")
      .on("workflow_events")
      .columns(["rid", "number"])
      .execute();

    if (engine === "sqlite") return;
    // Nodes that share the database share the work. Each node leases shards, and forwards commands for the
    // other shards.
    await db.schema
      .createTable("workflow_nodes")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("lease_until", "timestamptz", (c) => c.notNull())
      .execute();
    await db.schema
      .createTable("workflow_shards")
      .addColumn("id", "integer", (c) => c.primaryKey())
      .addColumn("owner", "text")
      .addColumn("term", "bigint", (c) => c.notNull().defaultTo(0))
      .addColumn("lease_until", "timestamptz", (c) => c.notNull().defaultTo(sql`now()`))
      .execute();
    await sql`insert into workflow_shards (id) select generate_series(0, ${sql.raw(String(shardCount - 1))})`.execute(
      db,
    );
    await db.schema
      .createTable("workflow_commands")
      .addColumn("id", "bigserial", (c) => c.primaryKey())
      .addColumn("shard", "integer", (c) => c.notNull())
      .addColumn("command", "text", (c) => c.notNull())
      .addColumn("answer", "text")
      .addColumn("sent_on", "timestamptz", (c) => c.notNull().defaultTo(sql`now()`))
      .execute();
    await sql`create index workflow_commands_open on workflow_commands (shard, id) where answer is null`.execute(
      db,
    );
  },
});
