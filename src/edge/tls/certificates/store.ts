import type { Selectable } from "kysely";
import type { CertificatesTable } from "./tables.ts";
import type { Read, Write } from "../../../platform/storage/storage.ts";
import type { Certificate } from "./certificates.ts";

const toCertificate = (row: Selectable<CertificatesTable>): Certificate => ({
  id: row.id,
  zoneId: row.zone_id,
  packId: row.pack_id,
  type: row.type as Certificate["type"],
  bundleMethod: row.bundle_method as Certificate["bundleMethod"],
  priority: row.priority,
  certificate: row.certificate,
  privateKey: row.private_key,
  hosts: JSON.parse(row.hosts) as string[],
  issuer: row.issuer,
  signature: row.signature,
  expiresOn: row.expires_on,
  uploadedOn: row.uploaded_on,
  modifiedOn: row.modified_on,
});

const columns = (certificate: Certificate) => ({
  type: certificate.type,
  bundle_method: certificate.bundleMethod,
  priority: certificate.priority,
  certificate: certificate.certificate,
  private_key: certificate.privateKey,
  hosts: JSON.stringify(certificate.hosts),
  issuer: certificate.issuer,
  signature: certificate.signature,
  expires_on: certificate.expiresOn,
  modified_on: certificate.modifiedOn,
});

export async function loadAll(read: Read): Promise<Certificate[]> {
  return (await read.selectFrom("certificates").selectAll().execute()).map(toCertificate);
}

export interface Expiry {
  zoneId: string;
  hosts: string[];
  expiresOn: number;
}

export async function listExpiries(read: Read): Promise<Expiry[]> {
  const rows = await read.selectFrom("certificates").select(["zone_id", "hosts", "expires_on"]).execute();
  return rows.map((row) => ({
    zoneId: row.zone_id,
    hosts: JSON.parse(row.hosts) as string[],
    expiresOn: row.expires_on,
  }));
}

/** The certificates of a zone in order of preference. */
export async function listOfZone(read: Read, zoneId: string): Promise<Certificate[]> {
  const rows = await read
    .selectFrom("certificates")
    .selectAll()
    .where("zone_id", "=", zoneId)
    .orderBy("priority", "desc")
    .orderBy("uploaded_on", "desc")
    .orderBy("id")
    .execute();
  return rows.map(toCertificate);
}

export async function find(read: Read, id: string): Promise<Certificate | undefined> {
  const row = await read.selectFrom("certificates").selectAll().where("id", "=", id).executeTakeFirst();
  return row && toCertificate(row);
}

export async function insert(trx: Write, certificate: Certificate): Promise<void> {
  const { id, zoneId, packId, uploadedOn } = certificate;
  await trx
    .insertInto("certificates")
    .values({ id, zone_id: zoneId, pack_id: packId, uploaded_on: uploadedOn, ...columns(certificate) })
    .execute();
}

export async function update(trx: Write, certificate: Certificate): Promise<void> {
  await trx.updateTable("certificates").set(columns(certificate)).where("id", "=", certificate.id).execute();
}

export async function remove(trx: Write, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await trx.deleteFrom("certificates").where("id", "in", ids).execute();
}
