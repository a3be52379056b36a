import { sql, type Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** An index for finding messages with expired leases. */
export const queueLeases: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createIndex("queue_messages_leased")
      .on("queue_messages")
      .columns(["queue_number", "available_on"])
      .where(sql.ref("lease"), "is not", null)
      .execute();
  },
};
