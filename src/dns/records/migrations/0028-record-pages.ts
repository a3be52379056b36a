import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Indexes that find a late page of records without reading the rows of earlier pages. */
export const recordPages = (engine: "sqlite" | "postgres"): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createIndex("dns_records_by_name")
      .on("dns_records")
      .columns(["zone_id", "name", "id"])
      .execute();
    await db.schema.dropIndex("dns_records_zone_name").execute();
    // PostgreSQL cannot index values as long as a TXT record.
    if (engine === "postgres") return;
    await db.schema
      .createIndex("dns_records_by_content")
      .on("dns_records")
      .columns(["zone_id", "content", "name", "id"])
      .execute();
  },
});
