import type { Selectable } from "kysely";
import type { D1DatabasesTable } from "./tables.ts";
import type { Read, Write } from "../../platform/storage/storage.ts";
import type { D1Database } from "./database.ts";

const toDatabase = (row: Selectable<D1DatabasesTable>): D1Database => ({
  id: row.id,
  accountId: row.account_id,
  name: row.name,
  locationHint: row.location_hint,
  jurisdiction: row.jurisdiction,
  readReplication: row.read_replication,
  createdOn: row.created_on,
});

export async function loadAll(read: Read): Promise<D1Database[]> {
  return (await read.selectFrom("d1_databases").selectAll().execute()).map(toDatabase);
}

export async function insert(trx: Write, database: D1Database): Promise<void> {
  await trx
    .insertInto("d1_databases")
    .values({
      id: database.id,
      account_id: database.accountId,
      name: database.name,
      location_hint: database.locationHint,
      jurisdiction: database.jurisdiction,
      read_replication: database.readReplication,
      created_on: database.createdOn,
    })
    .execute();
}

export async function setReadReplication(
  trx: Write,
  id: string,
  mode: D1Database["readReplication"],
): Promise<void> {
  await trx.updateTable("d1_databases").set({ read_replication: mode }).where("id", "=", id).execute();
}

export async function remove(trx: Write, id: string): Promise<void> {
  await trx.deleteFrom("d1_databases").where("id", "=", id).execute();
}
