import type { Selectable } from "kysely";
import type { ZonesTable } from "./tables.ts";
import type { Read, Write } from "../../platform/storage/storage.ts";
import type { PlanName } from "../../platform/config/plan-names.ts";
import { prepared } from "../../platform/storage/prepared.ts";
import { ancestorsOf } from "./precedence.ts";
import { zoneErrors } from "./errors.ts";
import type { Zone } from "./zone.ts";
import { clock } from "../../platform/timers/clock.ts";

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
  authorizedBy: row.authorized_by,
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
  authorized_by: zone.authorizedBy,
});

export async function loadAll(read: Read): Promise<Zone[]> {
  return (await read.selectFrom("zones").selectAll().orderBy("name").execute()).map(toZone);
}

/** The zone with the id, or undefined. */
export async function find(read: Read, id: string): Promise<Zone | undefined> {
  const row = await read.selectFrom("zones").selectAll().where("id", "=", id).executeTakeFirst();
  return row && toZone(row);
}

/** The zones of all accounts with this name, around it, or inside it. */
export async function listRelated(read: Read, name: string): Promise<Zone[]> {
  const rows = await read
    .selectFrom("zones")
    .selectAll()
    .where((eb) => eb.or([eb("name", "in", [name, ...ancestorsOf(name)]), eb("name", "like", `%.${name}`)]))
    .execute();
  return rows.map(toZone);
}

/**
 * The records of a zone that can authorize a zone inside it: NS at the zone cuts, and TXT at the verification
 * name.
 */
export async function listDelegations(
  read: Read,
  zoneId: string,
  cuts: readonly string[],
  verification: string,
): Promise<{ type: string; name: string; content: string }[]> {
  return read
    .selectFrom("dns_records")
    .select(["type", "name", "content"])
    .where("zone_id", "=", zoneId)
    .where((eb) =>
      eb.or([
        eb.and([eb("type", "=", "NS"), eb("name", "in", cuts)]),
        eb.and([eb("type", "=", "TXT"), eb("name", "=", verification)]),
      ]),
    )
    .execute();
}

/**
 * Key of the first serial for the next zone of a name. Secondaries ignore a zone with a lower serial than
 * theirs.
 */
const serialKey = (name: string): string => `zone_serial ${name}`;

export async function insert(trx: Write, zone: Zone): Promise<void> {
  const before = await trx
    .deleteFrom("meta")
    .where("key", "=", serialKey(zone.name))
    .returning("value")
    .executeTakeFirst();
  await trx
    .insertInto("zones")
    .values({
      id: zone.id,
      account_id: zone.accountId,
      name: zone.name,
      created_on: zone.createdOn,
      serial: Math.max(zone.serial, Number(before?.value ?? 0)),
      record_count: 0,
      ...columns(zone),
    })
    .execute();
}

/** Updates a zone's row and raises its serial, because its status and name servers affect its DNS answers. */
export async function update(trx: Write, zone: Zone): Promise<void> {
  await trx.updateTable("zones").set(columns(zone)).where("id", "=", zone.id).execute();
  await raiseSerial(trx, { zoneId: zone.id, added: 0, now: Math.floor(clock.now() / 1000) });
}

export async function remove(trx: Write, id: string): Promise<void> {
  await trx.deleteFrom("rulesets").where("owner_id", "=", id).execute();
  const gone = await trx
    .deleteFrom("zones")
    .where("id", "=", id)
    .returning(["name", "serial"])
    .executeTakeFirst();
  // A serial that is behind the clock need not be kept, because a later zone of this name starts at the clock.
  if (gone === undefined || gone.serial < Math.floor(clock.now() / 1000)) return;
  const value = String(gone.serial + 1);
  await trx
    .insertInto("meta")
    .values({ key: serialKey(gone.name), value })
    .onConflict((conflict) => conflict.column("key").doUpdateSet({ value }))
    .execute();
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
 * Raises the SOA serial after a change of records (always forward, and at least to the clock in seconds) and
 * updates the record count.
 */
export async function noteRecordChange(
  trx: Write,
  zoneId: string,
  added: number,
): Promise<{ count: number; serial: number }> {
  const [row] = await raiseSerial(trx, { zoneId, added, now: Math.floor(clock.now() / 1000) });
  if (row === undefined) throw zoneErrors.notFound(zoneId); // deleted concurrently
  return { count: row.record_count, serial: row.serial };
}
