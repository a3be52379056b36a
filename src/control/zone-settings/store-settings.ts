import type { Read, Write } from "../../platform/storage/storage.ts";

export interface ZoneSettingRow {
  zoneId: string;
  setting: string;
  value: string;
  modifiedOn: number;
}

const toRow = (row: {
  zone_id: string;
  setting: string;
  value: string;
  modified_on: number;
}): ZoneSettingRow => ({
  zoneId: row.zone_id,
  setting: row.setting,
  value: row.value,
  modifiedOn: row.modified_on,
});

export async function loadAll(read: Read): Promise<ZoneSettingRow[]> {
  return (await read.selectFrom("zone_settings").selectAll().execute()).map(toRow);
}

export async function listOfZone(read: Read, zoneId: string): Promise<ZoneSettingRow[]> {
  const rows = await read.selectFrom("zone_settings").selectAll().where("zone_id", "=", zoneId).execute();
  return rows.map(toRow);
}

export async function put(trx: Write, row: ZoneSettingRow): Promise<void> {
  const columns = { value: row.value, modified_on: row.modifiedOn };
  await trx
    .insertInto("zone_settings")
    .values({ zone_id: row.zoneId, setting: row.setting, ...columns })
    .onConflict((conflict) => conflict.columns(["zone_id", "setting"]).doUpdateSet(columns))
    .execute();
}
