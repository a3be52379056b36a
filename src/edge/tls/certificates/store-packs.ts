import type { Selectable } from "kysely";
import type { CertificatePacksTable } from "./tables.ts";
import type { Read, Write } from "../../../platform/storage/storage.ts";
import type { CertificatePack } from "./packs.ts";

const toPack = (row: Selectable<CertificatePacksTable>): CertificatePack => ({
  id: row.id,
  zoneId: row.zone_id,
  type: row.type,
  hosts: JSON.parse(row.hosts) as string[],
  validationMethod: row.validation_method,
  certificateAuthority: row.certificate_authority as CertificatePack["certificateAuthority"],
  validityDays: row.validity_days as CertificatePack["validityDays"],
  attempts: row.attempts,
  nextOn: row.next_on,
  error: row.error,
  createdOn: row.created_on,
});

const columns = (pack: CertificatePack) => ({
  hosts: JSON.stringify(pack.hosts),
  validation_method: pack.validationMethod,
  attempts: pack.attempts,
  next_on: pack.nextOn,
  error: pack.error,
});

export async function listOfZone(read: Read, zoneId: string): Promise<CertificatePack[]> {
  const rows = await read
    .selectFrom("certificate_packs")
    .selectAll()
    .where("zone_id", "=", zoneId)
    .orderBy("created_on")
    .orderBy("id")
    .execute();
  return rows.map(toPack);
}

export async function find(read: Read, id: string): Promise<CertificatePack | undefined> {
  const row = await read.selectFrom("certificate_packs").selectAll().where("id", "=", id).executeTakeFirst();
  return row && toPack(row);
}

export async function insert(trx: Write, pack: CertificatePack): Promise<void> {
  await trx
    .insertInto("certificate_packs")
    .values({
      id: pack.id,
      zone_id: pack.zoneId,
      type: pack.type,
      certificate_authority: pack.certificateAuthority,
      validity_days: pack.validityDays,
      created_on: pack.createdOn,
      ...columns(pack),
    })
    .execute();
}

export async function update(trx: Write, pack: CertificatePack): Promise<void> {
  await trx.updateTable("certificate_packs").set(columns(pack)).where("id", "=", pack.id).execute();
}

export async function remove(trx: Write, id: string): Promise<void> {
  await trx.deleteFrom("certificate_packs").where("id", "=", id).execute();
}

/** Due packs, longest waiting first. */
export async function listDue(read: Read, nowMs: number, limit: number): Promise<CertificatePack[]> {
  const rows = await read
    .selectFrom("certificate_packs")
    .selectAll()
    .where("next_on", "<=", nowMs)
    .orderBy("next_on")
    .limit(limit)
    .execute();
  return rows.map(toPack);
}

export async function countFailing(read: Read): Promise<number> {
  const row = await read
    .selectFrom("certificate_packs")
    .select((eb) => eb.fn.countAll().as("count"))
    .where("error", "is not", null)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

/** Postpones a pack, unless another node has done so since it was read and so works on it. */
export async function claim(read: Read, pack: CertificatePack, untilMs: number): Promise<boolean> {
  const { numUpdatedRows } = await read
    .updateTable("certificate_packs")
    .set({ next_on: untilMs })
    .where("id", "=", pack.id)
    .where("next_on", "=", pack.nextOn)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

export async function proxiedNames(read: Read, zoneId: string, limit: number): Promise<string[]> {
  const rows = await read
    .selectFrom("dns_records")
    .select("name")
    .distinct()
    .where("zone_id", "=", zoneId)
    .where("proxied", "=", 1)
    .where("name", "not like", "*.%")
    .orderBy("name")
    .limit(limit)
    .execute();
  return rows.map(({ name }) => name);
}
