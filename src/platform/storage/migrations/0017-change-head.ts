import { sql, type Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/**
 * Gapless numbers of changes on PostgreSQL: `change_head` has the number of the last transaction with changes,
 * and `changes` the `total` changes of each such transaction, numbered by `n` from 1.
 */
export const changeHead = (engine: "sqlite" | "postgres"): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    if (engine === "sqlite") return;
    // Every change updates the one row. Free space in its page lets PostgreSQL do this without new index entries.
    await sql`create table change_head (
      one integer primary key check (one = 1),
      seq bigint not null
    ) with (fillfactor = 10)`.execute(db);
    await sql`insert into change_head (one, seq) values (1, 0)`.execute(db);
    // Starting nodes load everything, so none needs the rows of the log before.
    await db.schema.dropTable("changes").execute();
    await db.schema
      .createTable("changes")
      .addColumn("seq", "bigint", (c) => c.notNull())
      .addColumn("n", "integer", (c) => c.notNull())
      .addColumn("total", "integer", (c) => c.notNull())
      .addColumn("kind", "text", (c) => c.notNull())
      .addColumn("id", "text", (c) => c.notNull())
      .addColumn("parent_id", "text")
      .addColumn("logged_on", "bigint", (c) => c.notNull())
      .addPrimaryKeyConstraint("changes_pk", ["seq", "n"])
      .execute();
  },
});
