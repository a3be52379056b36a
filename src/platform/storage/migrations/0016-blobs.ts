import { sql, type Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** The location of the blobs, and, on PostgreSQL, the blobs of `--blob-url postgres`. */
export const blobs = (engine: "sqlite" | "postgres"): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("blob_place")
      .addColumn("of", "text", (c) => c.primaryKey())
      .addColumn("id", "text", (c) => c.notNull())
      .addColumn("shown", "text", (c) => c.notNull())
      .execute();
    if (engine === "sqlite") return;
    await db.schema
      .createTable("blobs")
      .addColumn("key", "text", (c) => c.primaryKey())
      .addColumn("size_bytes", "bigint", (c) => c.notNull())
      .addColumn("sha256", "text", (c) => c.notNull())
      .addColumn("written_on", "bigint", (c) => c.notNull())
      .execute();
    await db.schema
      .createTable("blob_chunks")
      .addColumn("key", "text", (c) => c.notNull().references("blobs.key").onDelete("cascade"))
      .addColumn("number", "integer", (c) => c.notNull())
      .addColumn("bytes", "bytea", (c) => c.notNull())
      .addPrimaryKeyConstraint("blob_chunks_pk", ["key", "number"])
      .execute();
    // Most blobs are compressed already.
    await sql`alter table blob_chunks alter column bytes set storage external`.execute(db);
  },
});
