import { sql, type Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** On PostgreSQL: each row of the log of objects has a mark, which is never given out again, as its number can be. */
export const objectLogMarks = (engine: "sqlite" | "postgres"): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    if (engine === "sqlite") return;
    await db.schema
      .alterTable("object_log")
      .addColumn("mark", "text", (c) => c.notNull().defaultTo(sql`gen_random_uuid()`))
      .execute();
  },
});
