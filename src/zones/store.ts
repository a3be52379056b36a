import type { Selectable } from "kysely";
import type { ZonesTable } from "../storage/schema.ts";
import type { Read, Write } from "../storage/storage.ts";
import type { PlanName } from "./plans.ts";
import { prepared } from "../storage/prepared.ts";
import { zoneErrors, type Zone } from "./zone.ts";

const toZone = (row: Selectable<ZonesTable>): Zone => ({
  id: row.id,
  accountId: row.account_id,
  name: row.name,
  type: row.type as Zone["type"],
  status: row.status as Zone["status"],
  paused: row.paused === 1,
  plan: row.plan as PlanName,
  nameServers: JSON.parse(row.name_servers) as string[],
  vanityNameServers: JSON.parse(row.vanity_name_servers) as string[],
  verificationKey: row.verification_key,
  smartRouting: row.smart_routing,
  smartRoutingModifiedOn: row.smart_routing_modified_on,
  serial: row.serial,
  createdOn: row.created_on,
  modifiedOn: row.modified_on,
  activatedOn: row.activated_on,
  checkedOn: row.checked_on,
});

const columns = (zone: Zone) => ({
  type: zone.type,
  status: zone.status,
  paused: zone.paused ? (1 as const) : (0 as const),
  plan: zone.plan,
  name_servers: JSON.stringify(zone.nameServers),
  vanity_name_servers: JSON.stringify(zone.vanityNameServers),
  verification_key: zone.verificationKey,
  smart_routing: zone.smartRouting,
  smart_routing_modified_on: zone.smartRoutingModifiedOn,
  modified_on: zone.modifiedOn,
  activated_on: zone.activatedOn,
  checked_on: zone.checkedOn,
});

export async function loadAll(read: Read): Promise<Zone[]> {
  return (await read.selectFrom("zones").selectAll().orderBy("name").execute()).map(toZone);
}

export async function find(read: Read, id: string): Promise<Zone | undefined> {
  const row = await read.selectFrom("zones").selectAll().where("id", "=", id).executeTakeFirst();
  return row && toZone(row);
}

export async function insert(trx: Write, zone: Zone): Promise<void> {
  await trx
    .insertInto("zones")
    .values({
      id: zone.id,
      account_id: zone.accountId,
      name: zone.name,
      created_on: zone.createdOn,
      serial: zone.serial,
      record_count: 0,
      ...columns(zone),
    })
    .execute();
}

/** What a zone's own row says shows in its answers, too: its status, and its name servers. So its serial is raised. */
export async function update(trx: Write, zone: Zone): Promise<void> {
  await trx.updateTable("zones").set(columns(zone)).where("id", "=", zone.id).execute();
  await raiseSerial(trx, { zoneId: zone.id, added: 0, now: Math.floor(Date.now() / 1000) });
}

export async function remove(trx: Write, id: string): Promise<void> {
  await trx.deleteFrom("rulesets").where("owner_id", "=", id).execute();
  await trx.deleteFrom("zones").where("id", "=", id).execute();
}

const raiseSerial = prepared((db, { zoneId, added, now }: { zoneId: string; added: number; now: number }) =>
  db
    .updateTable("zones")
    .set((eb) => ({
      serial: eb
        .case()
        .when("serial", ">=", now)
        .then(eb("serial", "+", 1))
        .else(now)
        .end(),
      record_count: eb("record_count", "+", added),
    }))
    .where("id", "=", zoneId)
    .returning(["record_count", "serial"]),
);

/**
 * Notes a change of the zone's records: raises the SOA serial (always forward, and never behind the clock) and counts
 * the records.
 */
export async function noteRecordChange(
  trx: Write,
  zoneId: string,
  added: number,
): Promise<{ count: number; serial: number }> {
  const [row] = await raiseSerial(trx, { zoneId, added, now: Math.floor(Date.now() / 1000) });
  if (row === undefined) throw zoneErrors.notFound(zoneId); // deleted meanwhile
  return { count: row.record_count, serial: row.serial };
}
