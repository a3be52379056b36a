import type { Read, Write } from "../../platform/storage/storage.ts";

export interface BotManagementRow {
  zoneId: string;
  isEnabled: boolean;
  modifiedOn: number;
}

export async function loadAll(read: Read): Promise<BotManagementRow[]> {
  const rows = await read.selectFrom("bot_management").selectAll().execute();
  return rows.map(toRow);
}

export async function find(read: Read, zoneId: string): Promise<BotManagementRow | undefined> {
  const row = await read
    .selectFrom("bot_management")
    .selectAll()
    .where("zone_id", "=", zoneId)
    .executeTakeFirst();
  return row && toRow(row);
}

export async function put(trx: Write, { zoneId, isEnabled, modifiedOn }: BotManagementRow): Promise<void> {
  const columns = { is_enabled: isEnabled ? (1 as const) : (0 as const), modified_on: modifiedOn };
  await trx
    .insertInto("bot_management")
    .values({ zone_id: zoneId, ...columns })
    .onConflict((conflict) => conflict.column("zone_id").doUpdateSet(columns))
    .execute();
}

const toRow = (row: { zone_id: string; is_enabled: 0 | 1; modified_on: number }): BotManagementRow => ({
  zoneId: row.zone_id,
  isEnabled: row.is_enabled === 1,
  modifiedOn: row.modified_on,
});
