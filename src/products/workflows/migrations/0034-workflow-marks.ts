import { sql, type Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** On PostgreSQL: the mark of each node's last commit, which tells the node that the database is in an earlier state. */
export const workflowMarks = (engine: "sqlite" | "postgres"): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    if (engine === "sqlite") return;
    await db.schema
      .createTable("workflow_marks")
      .addColumn("node", "text", (c) => c.primaryKey())
      .addColumn("mark", "text", (c) => c.notNull())
      .addColumn("at", "timestamptz", (c) => c.notNull())
      .execute();
    // They are updated in place with each commit.
    await sql`alter table workflow_marks set (fillfactor = 50)`.execute(db);
  },
});
