import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Logpush jobs. Their ids are chosen at random, because the spool of a deleted job must not serve another one. */
export const logpush: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("logpush_jobs")
      .addColumn("id", "bigint", (c) => c.primaryKey().notNull())
      .addColumn("account_id", "text", (c) => c.notNull().references("accounts.id").onDelete("cascade"))
      .addColumn("zone_id", "text", (c) => c.references("zones.id").onDelete("cascade"))
      .addColumn("data_set", "text", (c) => c.notNull())
      .addColumn("name", "text", (c) => c.notNull())
      .addColumn("destination", "text", (c) => c.notNull())
      .addColumn("is_enabled", "integer", (c) => c.notNull())
      .addColumn("output", "text", (c) => c.notNull())
      .addColumn("filter", "text")
      .addColumn("frequency", "text", (c) => c.notNull())
      .addColumn("max_upload_bytes", "integer", (c) => c.notNull())
      .addColumn("max_upload_records", "integer", (c) => c.notNull())
      .addColumn("max_upload_interval_seconds", "integer", (c) => c.notNull())
      .addColumn("last_complete", "bigint")
      .addColumn("last_error", "bigint")
      .addColumn("error_message", "text")
      .addColumn("failing_since", "bigint")
      .addColumn("cursor", "text")
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .addColumn("modified_on", "bigint", (c) => c.notNull())
      .execute();
    for (const owner of ["account_id", "zone_id"])
      await db.schema.createIndex(`logpush_jobs_${owner}`).on("logpush_jobs").column(owner).execute();
  },
};
