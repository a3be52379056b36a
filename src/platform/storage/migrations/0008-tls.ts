import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/**
 * Settings of zones, certificates with their keys, certificate packs for an ACME authority to issue, and ACME
 * challenges.
 */
export const tls: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("zone_settings")
      .addColumn("zone_id", "text", (c) => c.notNull().references("zones.id").onDelete("cascade"))
      .addColumn("setting", "text", (c) => c.notNull())
      .addColumn("value", "text", (c) => c.notNull())
      .addColumn("modified_on", "bigint", (c) => c.notNull())
      .addPrimaryKeyConstraint("zone_settings_zone_setting", ["zone_id", "setting"])
      .execute();

    await db.schema
      .createTable("certificate_packs")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("zone_id", "text", (c) => c.notNull().references("zones.id").onDelete("cascade"))
      .addColumn("type", "text", (c) => c.notNull())
      .addColumn("hosts", "text", (c) => c.notNull())
      .addColumn("validation_method", "text", (c) => c.notNull())
      .addColumn("certificate_authority", "text", (c) => c.notNull())
      .addColumn("validity_days", "integer", (c) => c.notNull())
      .addColumn("attempts", "integer", (c) => c.notNull())
      .addColumn("next_on", "bigint", (c) => c.notNull())
      .addColumn("error", "text")
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .execute();
    await db.schema.createIndex("certificate_packs_zone").on("certificate_packs").column("zone_id").execute();
    await db.schema.createIndex("certificate_packs_next").on("certificate_packs").column("next_on").execute();

    await db.schema
      .createTable("certificates")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("zone_id", "text", (c) => c.notNull().references("zones.id").onDelete("cascade"))
      .addColumn("pack_id", "text", (c) => c.references("certificate_packs.id").onDelete("cascade"))
      .addColumn("type", "text", (c) => c.notNull())
      .addColumn("bundle_method", "text", (c) => c.notNull())
      .addColumn("priority", "integer", (c) => c.notNull())
      .addColumn("certificate", "text", (c) => c.notNull())
      .addColumn("private_key", "text", (c) => c.notNull())
      .addColumn("hosts", "text", (c) => c.notNull())
      .addColumn("issuer", "text", (c) => c.notNull())
      .addColumn("signature", "text", (c) => c.notNull())
      .addColumn("expires_on", "bigint", (c) => c.notNull())
      .addColumn("uploaded_on", "bigint", (c) => c.notNull())
      .addColumn("modified_on", "bigint", (c) => c.notNull())
      .execute();
    await db.schema.createIndex("certificates_zone").on("certificates").column("zone_id").execute();
    await db.schema.createIndex("certificates_pack").on("certificates").column("pack_id").execute();

    await db.schema
      .createTable("acme_accounts")
      .addColumn("directory", "text", (c) => c.primaryKey())
      .addColumn("private_key", "text", (c) => c.notNull())
      .execute();

    await db.schema
      .createTable("acme_challenges")
      .addColumn("token", "text", (c) => c.primaryKey())
      .addColumn("zone_id", "text", (c) => c.notNull().references("zones.id").onDelete("cascade"))
      .addColumn("kind", "text", (c) => c.notNull())
      .addColumn("name", "text", (c) => c.notNull())
      .addColumn("value", "text", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .execute();
    await db.schema
      .createIndex("acme_challenges_zone")
      .on("acme_challenges")
      .columns(["zone_id", "name"])
      .execute();
  },
};
