import { sql, type Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Scripts with their versions and deployments, dispatch namespaces, routes, and key-value namespaces. */
export const scripts = (engine: "sqlite" | "postgres"): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    const bytes = engine === "postgres" ? sql`bytea` : sql`blob`;

    await db.schema
      .createTable("dispatch_namespaces")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("account_id", "text", (c) => c.notNull().references("accounts.id").onDelete("cascade"))
      .addColumn("name", "text", (c) => c.notNull())
      .addColumn("trusted", "integer", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .addColumn("created_by", "text", (c) => c.notNull())
      .addColumn("modified_on", "bigint", (c) => c.notNull())
      .addColumn("modified_by", "text", (c) => c.notNull())
      .addUniqueConstraint("dispatch_namespaces_account_name", ["account_id", "name"])
      .execute();

    await db.schema
      .createTable("scripts")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("account_id", "text", (c) => c.notNull().references("accounts.id").onDelete("cascade"))
      .addColumn("namespace_id", "text", (c) => c.references("dispatch_namespaces.id").onDelete("cascade"))
      // The account or dispatch namespace in which names are unique.
      .addColumn("owner_id", "text", (c) => c.notNull())
      .addColumn("name", "text", (c) => c.notNull())
      .addColumn("tags", "text", (c) => c.notNull())
      .addColumn("settings", "text", (c) => c.notNull())
      .addColumn("live_versions", "text", (c) => c.notNull())
      .addColumn("version_count", "integer", (c) => c.notNull())
      .addColumn("subdomain_enabled", "integer", (c) => c.notNull())
      .addColumn("previews_enabled", "integer", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .addColumn("modified_on", "bigint", (c) => c.notNull())
      .addUniqueConstraint("scripts_owner_name", ["owner_id", "name"])
      .execute();

    await db.schema
      .createTable("script_versions")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("script_id", "text", (c) => c.notNull().references("scripts.id").onDelete("cascade"))
      .addColumn("number", "integer", (c) => c.notNull())
      .addColumn("code_id", "text", (c) => c.notNull())
      .addColumn("content", "text", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .addUniqueConstraint("script_versions_number", ["script_id", "number"])
      .execute();

    // Versions that differ only in settings share their code.
    await db.schema
      .createTable("script_modules")
      .addColumn("code_id", "text", (c) => c.notNull())
      .addColumn("position", "integer", (c) => c.notNull())
      .addColumn("script_id", "text", (c) => c.notNull().references("scripts.id").onDelete("cascade"))
      .addColumn("name", "text", (c) => c.notNull())
      .addColumn("kind", "text", (c) => c.notNull())
      .addColumn("content_type", "text", (c) => c.notNull())
      .addColumn("content", bytes, (c) => c.notNull())
      .addPrimaryKeyConstraint("script_modules_key", ["code_id", "position"])
      .execute();
    await db.schema.createIndex("script_modules_script").on("script_modules").column("script_id").execute();

    await db.schema
      .createTable("script_deployments")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("script_id", "text", (c) => c.notNull().references("scripts.id").onDelete("cascade"))
      .addColumn("versions", "text", (c) => c.notNull())
      .addColumn("source", "text", (c) => c.notNull())
      .addColumn("author_email", "text", (c) => c.notNull())
      .addColumn("annotations", "text", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .execute();
    await db.schema
      .createIndex("script_deployments_script")
      .on("script_deployments")
      .columns(["script_id", "created_on"])
      .execute();

    await db.schema
      .createTable("worker_routes")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("zone_id", "text", (c) => c.notNull().references("zones.id").onDelete("cascade"))
      .addColumn("pattern", "text", (c) => c.notNull())
      .addColumn("script", "text")
      .addUniqueConstraint("worker_routes_zone_pattern", ["zone_id", "pattern"])
      .execute();

    await db.schema
      .createTable("worker_domains")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("account_id", "text", (c) => c.notNull().references("accounts.id").onDelete("cascade"))
      .addColumn("zone_id", "text", (c) => c.notNull().references("zones.id").onDelete("cascade"))
      .addColumn("hostname", "text", (c) => c.notNull().unique())
      .addColumn("service", "text", (c) => c.notNull())
      .addColumn("cert_id", "text", (c) => c.notNull())
      .execute();

    await db.schema
      .createTable("account_subdomains")
      .addColumn("account_id", "text", (c) => c.primaryKey().references("accounts.id").onDelete("cascade"))
      .addColumn("subdomain", "text", (c) => c.unique())
      .execute();

    await db.schema
      .createTable("kv_namespaces")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("account_id", "text", (c) => c.notNull().references("accounts.id").onDelete("cascade"))
      .addColumn("title", "text", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .addUniqueConstraint("kv_namespaces_account_title", ["account_id", "title"])
      .execute();

    // Keys are bytes, so that both engines sort them as UTF-8, which is the documented order of lists.
    await db.schema
      .createTable("kv_entries")
      .addColumn("namespace_id", "text", (c) =>
        c.notNull().references("kv_namespaces.id").onDelete("cascade"),
      )
      .addColumn("key", bytes, (c) => c.notNull())
      // Large values are in blobs.
      .addColumn("value", bytes)
      .addColumn("blob_key", "text")
      .addColumn("metadata", "text")
      .addColumn("expires_on", "bigint")
      .addPrimaryKeyConstraint("kv_entries_key", ["namespace_id", "key"])
      .execute();
    await db.schema.createIndex("kv_entries_expiry").on("kv_entries").column("expires_on").execute();
  },
});
