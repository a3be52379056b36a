import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** The name whose records authorize a zone inside another account's zone. */
export const zoneAuthority: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("zones").addColumn("authorized_by", "text").execute();
  },
};
