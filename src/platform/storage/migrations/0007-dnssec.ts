import type { Kysely } from "kysely";
import type { Migration } from "kysely/migration";

/** Keys of signed zones, DNS settings of zones, and zone transfers. */
export const dnssec: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("dnssec")
      .addColumn("zone_id", "text", (c) => c.primaryKey().references("zones.id").onDelete("cascade"))
      .addColumn("status", "text", (c) => c.notNull())
      .addColumn("private_key", "text", (c) => c.notNull())
      .addColumn("public_key", "text", (c) => c.notNull())
      .addColumn("multi_signer", "integer", (c) => c.notNull())
      .addColumn("ds_ttl", "bigint", (c) => c.notNull())
      .addColumn("ds_gone_on", "bigint")
      .addColumn("modified_on", "bigint", (c) => c.notNull())
      .execute();

    await db.schema
      .createTable("dns_settings")
      .addColumn("zone_id", "text", (c) => c.primaryKey().references("zones.id").onDelete("cascade"))
      .addColumn("settings", "text", (c) => c.notNull())
      .execute();

    const ofAccount = (table: string) =>
      db.schema
        .createTable(table)
        .addColumn("id", "text", (c) => c.primaryKey())
        .addColumn("account_id", "text", (c) => c.notNull().references("accounts.id").onDelete("cascade"))
        .addColumn("name", "text", (c) => c.notNull())
        .addColumn("created_on", "bigint", (c) => c.notNull());
    await ofAccount("transfer_keys")
      .addColumn("algorithm", "text", (c) => c.notNull())
      .addColumn("secret", "text", (c) => c.notNull())
      .execute();
    await ofAccount("transfer_networks")
      .addColumn("network", "text", (c) => c.notNull())
      .execute();
    await ofAccount("transfer_peers")
      .addColumn("address", "text")
      .addColumn("port", "integer", (c) => c.notNull())
      .addColumn("incremental", "integer", (c) => c.notNull())
      .addColumn("key_id", "text", (c) => c.references("transfer_keys.id"))
      .execute();

    await db.schema
      .createTable("outgoing_transfers")
      .addColumn("zone_id", "text", (c) => c.primaryKey().references("zones.id").onDelete("cascade"))
      .addColumn("name", "text", (c) => c.notNull())
      .addColumn("peer_ids", "text", (c) => c.notNull())
      .addColumn("enabled", "integer", (c) => c.notNull())
      .addColumn("created_on", "bigint", (c) => c.notNull())
      .execute();
  },
};
