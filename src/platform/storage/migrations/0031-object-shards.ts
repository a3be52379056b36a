import { sql, type Kysely } from "kysely";
import type { Migration } from "kysely/migration";

const shardCount = 64;

/** On PostgreSQL: which node runs which Durable Objects, and the order of the segments of their log. */
export const objectShards = (engine: "sqlite" | "postgres"): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    if (engine === "sqlite") return;
    await db.schema
      .createTable("object_nodes")
      .addColumn("id", "bigint", (c) => c.primaryKey().generatedAlwaysAsIdentity())
      .addColumn("node", "text", (c) => c.notNull())
      .addColumn("run", "text", (c) => c.notNull())
      .addColumn("attempt", "integer", (c) => c.notNull())
      .addColumn("address", "text", (c) => c.notNull())
      .addColumn("lease_ms", "integer", (c) => c.notNull())
      .addColumn("beats", "bigint", (c) => c.notNull())
      .addColumn("leaves", "integer", (c) => c.notNull())
      .addColumn("has_ended", "integer", (c) => c.notNull())
      .execute();
    await db.schema
      .createTable("object_shards")
      .addColumn("shard", "integer", (c) => c.primaryKey())
      .addColumn("owner", "bigint")
      .addColumn("term", "bigint", (c) => c.notNull().defaultTo(0))
      .addColumn("last", "bigint")
      .execute();
    await sql`insert into object_shards (shard) select generate_series(0, ${sql.lit(shardCount - 1)})`.execute(
      db,
    );
    await db.schema
      .createTable("object_log")
      .addColumn("number", "bigint", (c) => c.primaryKey())
      .addColumn("part", "text", (c) => c.notNull())
      .execute();
    await db.schema
      .createTable("object_log_head")
      .addColumn("one", "integer", (c) => c.primaryKey())
      .addColumn("number", "bigint", (c) => c.notNull())
      .execute();
    await sql`insert into object_log_head (one, number) values (1, 0)`.execute(db);
    await db.schema
      .createTable("node_values")
      .addColumn("name", "text", (c) => c.primaryKey())
      .addColumn("value", "text", (c) => c.notNull())
      .execute();
    // They are updated in place every second.
    for (const table of ["object_nodes", "object_shards", "object_log_head"])
      await sql`alter table ${sql.table(table)} set (fillfactor = 50)`.execute(db);
  },
});
