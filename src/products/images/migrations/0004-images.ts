import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Images, their variants and signing keys, and unreferenced blobs. */
export const images: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("images")
      .addColumn("account_id", "text", (c) => c.notNull().references("accounts.id").onDelete("cascade"))
      .addColumn("id", "text", (c) => c.notNull())
      .addColumn("filename", "text", (c) => c.notNull())
      .addColumn("uploaded_on", "bigint", (c) => c.notNull())
      .addColumn("require_signed_urls", "integer", (c) => c.notNull())
      .addColumn("meta", "text", (c) => c.notNull())
      .addColumn("creator", "text")
      .addColumn("upload_token_hash", "text", (c) => c.unique())
      .addColumn("expires_on", "bigint")
      .addColumn("content", "text")
      .addColumn("focus", "text")
      .addPrimaryKeyConstraint("images_pk", ["account_id", "id"])
      .execute();
    await db.schema
      .createIndex("images_account_uploaded")
      .on("images")
      .columns(["account_id", "uploaded_on", "id"])
      .execute();
    await db.schema.createIndex("images_expires").on("images").column("expires_on").execute();

    await db.schema
      .createTable("image_variants")
      .addColumn("account_id", "text", (c) => c.notNull().references("accounts.id").onDelete("cascade"))
      .addColumn("id", "text", (c) => c.notNull())
      .addColumn("options", "text", (c) => c.notNull())
      .addColumn("never_require_signed_urls", "integer", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .addPrimaryKeyConstraint("image_variants_pk", ["account_id", "id"])
      .execute();

    await db.schema
      .createTable("image_keys")
      .addColumn("account_id", "text", (c) => c.notNull().references("accounts.id").onDelete("cascade"))
      .addColumn("name", "text", (c) => c.notNull())
      .addColumn("value", "text", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .addPrimaryKeyConstraint("image_keys_pk", ["account_id", "name"])
      .execute();

    await db.schema
      .createTable("image_settings")
      .addColumn("account_id", "text", (c) => c.primaryKey().references("accounts.id").onDelete("cascade"))
      .addColumn("flexible_variants", "integer", (c) => c.notNull())
      .addColumn("browser_ttl", "integer")
      .execute();

    // A blob is listed here from before it is written until an image refers to it, and again after the image
    // is deleted.
    await db.schema
      .createTable("image_orphans")
      .addColumn("blob_key", "text", (c) => c.primaryKey())
      .addColumn("noted_on", "bigint", (c) => c.notNull())
      .execute();
  },
};
