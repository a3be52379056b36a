import type { Kysely } from "kysely";
import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Accounts, identity, zones, DNS records, rulesets, and the change log. */
export const initial = (engine: "sqlite" | "postgres"): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("accounts")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("name", "text", (c) => c.notNull())
      .addColumn("type", "text", (c) => c.notNull())
      .addColumn("settings", "text", (c) => c.notNull())
      .addColumn("has_billing", "integer", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .execute();

    await db.schema
      .createTable("users")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("email", "text", (c) => c.notNull().unique())
      .addColumn("first_name", "text")
      .addColumn("last_name", "text")
      .addColumn("telephone", "text")
      .addColumn("country", "text")
      .addColumn("zipcode", "text")
      .addColumn("api_key_hash", "text", (c) => c.unique())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .addColumn("modified_on", "bigint", (c) => c.notNull())
      .execute();

    await db.schema
      .createTable("memberships")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("account_id", "text", (c) => c.notNull().references("accounts.id").onDelete("cascade"))
      .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
      .addColumn("status", "text", (c) => c.notNull())
      .addColumn("roles", "text", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .addUniqueConstraint("memberships_account_user", ["account_id", "user_id"])
      .execute();

    await db.schema
      .createTable("api_tokens")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("owner_kind", "text", (c) => c.notNull())
      .addColumn("owner_id", "text", (c) => c.notNull())
      .addColumn("name", "text", (c) => c.notNull())
      .addColumn("status", "text", (c) => c.notNull())
      .addColumn("policies", "text", (c) => c.notNull())
      .addColumn("condition", "text")
      .addColumn("secret_hash", "text", (c) => c.notNull().unique())
      .addColumn("not_before", "bigint")
      .addColumn("expires_on", "bigint")
      .addColumn("issued_on", "bigint", (c) => c.notNull())
      .addColumn("modified_on", "bigint", (c) => c.notNull())
      .addColumn("last_used_on", "bigint")
      .execute();
    await db.schema
      .createIndex("api_tokens_owner")
      .on("api_tokens")
      .columns(["owner_id", "issued_on"])
      .execute();

    await db.schema
      .createTable("zones")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("account_id", "text", (c) => c.notNull().references("accounts.id").onDelete("cascade"))
      .addColumn("name", "text", (c) => c.notNull().unique())
      .addColumn("type", "text", (c) => c.notNull())
      .addColumn("status", "text", (c) => c.notNull())
      .addColumn("paused", "integer", (c) => c.notNull())
      .addColumn("plan", "text", (c) => c.notNull())
      .addColumn("name_servers", "text", (c) => c.notNull())
      .addColumn("vanity_name_servers", "text", (c) => c.notNull())
      .addColumn("verification_key", "text")
      .addColumn("smart_routing", "text", (c) => c.notNull())
      .addColumn("smart_routing_modified_on", "bigint")
      .addColumn("serial", "bigint", (c) => c.notNull())
      .addColumn("record_count", "integer", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .addColumn("modified_on", "bigint", (c) => c.notNull())
      .addColumn("activated_on", "bigint")
      .addColumn("checked_on", "bigint")
      .execute();

    await db.schema
      .createTable("dns_records")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("zone_id", "text", (c) => c.notNull().references("zones.id").onDelete("cascade"))
      .addColumn("type", "text", (c) => c.notNull())
      .addColumn("name", "text", (c) => c.notNull())
      .addColumn("content", "text", (c) => c.notNull())
      .addColumn("data", "text")
      .addColumn("priority", "integer")
      .addColumn("ttl", "integer", (c) => c.notNull())
      .addColumn("proxied", "integer", (c) => c.notNull())
      .addColumn("settings", "text", (c) => c.notNull())
      .addColumn("comment", "text")
      .addColumn("tags", "text", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .addColumn("modified_on", "bigint", (c) => c.notNull())
      .addColumn("comment_modified_on", "bigint")
      .addColumn("tags_modified_on", "bigint")
      .execute();
    await db.schema
      .createIndex("dns_records_zone_name")
      .on("dns_records")
      .columns(["zone_id", "name"])
      .execute();

    await db.schema
      .createTable("rulesets")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("owner_kind", "text", (c) => c.notNull())
      .addColumn("owner_id", "text", (c) => c.notNull())
      .addColumn("kind", "text", (c) => c.notNull())
      .addColumn("phase", "text", (c) => c.notNull())
      .addColumn("name", "text", (c) => c.notNull())
      .addColumn("description", "text", (c) => c.notNull())
      .addColumn("version", "integer", (c) => c.notNull())
      .addColumn("rules", "text", (c) => c.notNull())
      .addColumn("last_updated", "bigint", (c) => c.notNull())
      .execute();
    await db.schema
      .createIndex("rulesets_owner_phase")
      .on("rulesets")
      .columns(["owner_id", "phase"])
      .execute();

    // Only nodes that share a database need to be notified of each other's changes.
    if (engine === "postgres") {
      await db.schema
        .createTable("changes")
        .addColumn("seq", "bigserial", (c) => c.primaryKey())
        .addColumn("xid", sql`xid8`, (c) => c.notNull().defaultTo(sql`pg_current_xact_id()`))
        .addColumn("kind", "text", (c) => c.notNull())
        .addColumn("id", "text", (c) => c.notNull())
        .addColumn("parent_id", "text")
        .addColumn("logged_on", "bigint", (c) => c.notNull())
        .execute();
      await db.schema.createIndex("changes_xid").on("changes").column("xid").execute();
    }

    await db.schema
      .createTable("meta")
      .addColumn("key", "text", (c) => c.primaryKey())
      .addColumn("value", "text", (c) => c.notNull())
      .execute();
  },
});
