import { sql, type Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Live logs end when their creator may no longer read them. Open ones have no creator, so they end now. */
export const tailCreators: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`delete from tails`.execute(db);
    for (const name of ["creator_kind", "creator_id"])
      await db.schema
        .alterTable("tails")
        .addColumn(name, "text", (c) => c.notNull().defaultTo(""))
        .execute();
  },
};
