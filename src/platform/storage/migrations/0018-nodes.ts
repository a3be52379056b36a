import { sql, type Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** The nodes of the installation, and, on PostgreSQL, the calls that they count against shared rate limits. */
export const nodes = (engine: "sqlite" | "postgres"): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("nodes")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("run", "text", (c) => c.notNull())
      .addColumn("name", "text", (c) => c.notNull())
      .addColumn("pid", "integer", (c) => c.notNull())
      .addColumn("place", "text", (c) => c.notNull())
      .addColumn("version", "text", (c) => c.notNull())
      .addColumn("blobs", "text", (c) => c.notNull())
      .addColumn("started_on", "bigint", (c) => c.notNull())
      .addColumn("seen_on", "bigint", (c) => c.notNull())
      .addColumn("ended_on", "bigint")
      .addColumn("seq", "bigint")
      .execute();
    if (engine === "sqlite") return;
    await db.schema
      .createTable("node_rates")
      .addColumn("node", "text", (c) => c.primaryKey().references("nodes.id").onDelete("cascade"))
      .addColumn("run", "text", (c) => c.notNull())
      .addColumn("totals", "text", (c) => c.notNull())
      .execute();
    // Both are updated in place every few seconds.
    await sql`alter table nodes set (fillfactor = 50)`.execute(db);
    await sql`alter table node_rates set (fillfactor = 10)`.execute(db);
  },
});
