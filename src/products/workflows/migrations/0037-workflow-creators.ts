import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** The `traceparent` of the span that created an instance. Null without one, and from an older version of the program. */
export const workflowCreators = (): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("workflow_instances").addColumn("creator_trace", "text").execute();
  },
});
