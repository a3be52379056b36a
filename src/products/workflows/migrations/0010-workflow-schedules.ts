import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Schedules on which workflows create instances: a JSON array of cron expressions. */
export const workflowSchedules: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable("workflows")
      .addColumn("crons", "text", (c) => c.notNull().defaultTo("[]"))
      .execute();
  },
};
