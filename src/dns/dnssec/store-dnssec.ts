import type { Selectable } from "kysely";
import type { DnssecTable } from "./tables.ts";
import type { Read, Write } from "../../platform/storage/storage.ts";
import type { SigningState } from "./dnssec.ts";

const toState = (row: Selectable<DnssecTable>): SigningState => ({
  zoneId: row.zone_id,
  status: row.status as SigningState["status"],
  privateKey: row.private_key,
  publicKey: row.public_key,
  isMultiSigner: row.multi_signer === 1,
  dsTtl: row.ds_ttl,
  dsGoneOn: row.ds_gone_on,
  modifiedOn: row.modified_on,
});

const columns = (state: SigningState) => ({
  status: state.status,
  private_key: state.privateKey,
  public_key: state.publicKey,
  multi_signer: state.isMultiSigner ? (1 as const) : (0 as const),
  ds_ttl: state.dsTtl,
  ds_gone_on: state.dsGoneOn,
  modified_on: state.modifiedOn,
});

export async function loadAll(read: Read): Promise<SigningState[]> {
  return (await read.selectFrom("dnssec").selectAll().execute()).map(toState);
}

export async function find(read: Read, zoneId: string): Promise<SigningState | undefined> {
  const row = await read.selectFrom("dnssec").selectAll().where("zone_id", "=", zoneId).executeTakeFirst();
  return row && toState(row);
}

export async function save(trx: Write, state: SigningState): Promise<void> {
  await trx
    .insertInto("dnssec")
    .values({ zone_id: state.zoneId, ...columns(state) })
    .onConflict((conflict) => conflict.column("zone_id").doUpdateSet(columns(state)))
    .execute();
}

export async function remove(trx: Write, zoneId: string): Promise<void> {
  await trx.deleteFrom("dnssec").where("zone_id", "=", zoneId).execute();
}
