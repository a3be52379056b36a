import type { Read, Write } from "../../platform/storage/storage.ts";

/** The key of the row in `meta`, and the kind of its changes. */
export const ticketKeysKey = "tls_ticket_keys";

/** As stored, in JSON. */
export interface StoredTicketKeys {
  /** Base64. */
  keys: string;
  /** Epoch milliseconds. */
  madeOn: number;
}

export async function findTicketKeys(read: Read): Promise<StoredTicketKeys | undefined> {
  const row = await read
    .selectFrom("meta")
    .select("value")
    .where("key", "=", ticketKeysKey)
    .executeTakeFirst();
  return row && (JSON.parse(row.value) as StoredTicketKeys);
}

/** Replaces `old` with `next`. Does nothing if another node has replaced `old` already. */
export async function replaceTicketKeys(
  trx: Write,
  old: StoredTicketKeys | undefined,
  next: StoredTicketKeys,
): Promise<void> {
  const value = JSON.stringify(next);
  if (old === undefined)
    await trx
      .insertInto("meta")
      .values({ key: ticketKeysKey, value })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  else
    await trx
      .updateTable("meta")
      .set({ value })
      .where("key", "=", ticketKeysKey)
      .where("value", "=", JSON.stringify(old))
      .execute();
}
