import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Invitations to accounts. An accepted invitation becomes a membership. */
export const members: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable("users")
      .addColumn("invited", "integer", (c) => c.notNull().defaultTo(0))
      .execute();
    await db.schema
      .createTable("invitations")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("account_id", "text", (c) => c.notNull().references("accounts.id").onDelete("cascade"))
      .addColumn("email", "text", (c) => c.notNull())
      .addColumn("roles", "text", (c) => c.notNull())
      .addColumn("status", "text", (c) => c.notNull())
      .addColumn("secret_hash", "text", (c) => c.notNull())
      .addColumn("invited_by", "text")
      .addColumn("invited_on", "bigint", (c) => c.notNull())
      .addColumn("expires_on", "bigint", (c) => c.notNull())
      .addUniqueConstraint("invitations_account_email", ["account_id", "email"])
      .execute();
  },
};
