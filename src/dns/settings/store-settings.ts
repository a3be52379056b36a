import type { Read, Write } from "../../platform/storage/storage.ts";
import type { DnsSettings } from "./dns-settings.ts";

export async function loadAll(read: Read): Promise<{ zoneId: string; settings: DnsSettings }[]> {
  const rows = await read.selectFrom("dns_settings").selectAll().execute();
  return rows.map((row) => ({ zoneId: row.zone_id, settings: JSON.parse(row.settings) as DnsSettings }));
}

export async function find(read: Read, zoneId: string): Promise<DnsSettings | undefined> {
  const row = await read
    .selectFrom("dns_settings")
    .selectAll()
    .where("zone_id", "=", zoneId)
    .executeTakeFirst();
  return row && (JSON.parse(row.settings) as DnsSettings);
}

export async function save(trx: Write, zoneId: string, value: DnsSettings): Promise<void> {
  const settings = JSON.stringify(value);
  await trx
    .insertInto("dns_settings")
    .values({ zone_id: zoneId, settings })
    .onConflict((conflict) => conflict.column("zone_id").doUpdateSet({ settings }))
    .execute();
}
