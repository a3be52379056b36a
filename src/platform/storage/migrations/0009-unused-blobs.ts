import { sql, type Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/**
 * Columns and indexes for finding unused files: the last use of assets, the versions that use them, and
 * references to files.
 */
export const unusedBlobs = (engine: "sqlite" | "postgres"): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    for (const table of ["asset_files", "asset_manifests"])
      await db.schema.alterTable(table).renameColumn("created_on", "used_on").execute();
    await db.schema.createIndex("asset_manifests_scope").on("asset_manifests").column("scope").execute();

    await db.schema.alterTable("script_versions").addColumn("manifest_id", "text").execute();
    const manifest =
      engine === "postgres"
        ? sql`content::json -> 'assets' ->> 'manifest'`
        : sql`json_extract(content, '$.assets.manifest')`;
    await sql`update script_versions set manifest_id = ${manifest}`.execute(db);
    await db.schema
      .createIndex("script_versions_manifest")
      .on("script_versions")
      .column("manifest_id")
      .execute();

    await db.schema
      .createIndex("kv_entries_blob")
      .on("kv_entries")
      .column("blob_key")
      .where(sql.ref("blob_key"), "is not", null)
      .execute();
  },
});
