import type { Read, Write } from "../../../platform/storage/storage.ts";

/** Queries that read and that wrote, and the rows that they read and wrote. */
export type Figures = [readQueries: number, writeQueries: number, rowsRead: number, rowsWritten: number];
/** Figures by hour, in hours since the epoch. */
export type Hours = Record<number, Figures>;

const keyOf = (databaseId: string): string => `d1_usage:${databaseId}`;

export async function findUsage(read: Read, databaseId: string): Promise<Hours> {
  const row = await read
    .selectFrom("meta")
    .select("value")
    .where("key", "=", keyOf(databaseId))
    .executeTakeFirst();
  return row === undefined ? {} : (JSON.parse(row.value) as Hours);
}

export async function putUsage(trx: Write, databaseId: string, hours: Hours): Promise<void> {
  const value = JSON.stringify(hours);
  await trx
    .insertInto("meta")
    .values({ key: keyOf(databaseId), value })
    .onConflict((conflict) => conflict.column("key").doUpdateSet({ value }))
    .execute();
}

export async function removeUsage(trx: Write, databaseId: string): Promise<void> {
  await trx.deleteFrom("meta").where("key", "=", keyOf(databaseId)).execute();
}
