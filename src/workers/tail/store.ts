import type { Selectable } from "kysely";
import type { TailsTable } from "./tables.ts";
import type { Read, Write } from "../../platform/storage/storage.ts";
import type { Filter } from "./filter.ts";
import type { TailRecord } from "./tails.ts";

/** A tail as stored for all nodes. */
export interface SharedTail extends TailRecord {
  /** The node that has the watcher, or expects it. */
  holder: string;
  isConnected: boolean;
  /** Last sign of life of that node. */
  seenOn: number;
}

const toTail = (row: Selectable<TailsTable>): SharedTail => ({
  id: row.id,
  accountId: row.account_id,
  scriptId: row.script_id ?? undefined,
  filters: JSON.parse(row.filters) as Filter[],
  secretHash: Buffer.from(row.secret_hash, "hex"),
  creator: { kind: row.creator_kind, id: row.creator_id },
  expiresOn: row.expires_on,
  holder: row.holder,
  isConnected: row.is_connected === 1,
  seenOn: row.seen_on,
});

export async function loadAll(read: Read): Promise<SharedTail[]> {
  return (await read.selectFrom("tails").selectAll().execute()).map(toTail);
}

export async function find(read: Read, id: string): Promise<SharedTail | undefined> {
  const row = await read.selectFrom("tails").selectAll().where("id", "=", id).executeTakeFirst();
  return row && toTail(row);
}

export async function insert(trx: Write, tail: TailRecord, holder: string, now: number): Promise<void> {
  await trx
    .insertInto("tails")
    .values({
      id: tail.id,
      account_id: tail.accountId,
      script_id: tail.scriptId ?? null,
      filters: JSON.stringify(tail.filters),
      secret_hash: tail.secretHash.toString("hex"),
      creator_kind: tail.creator.kind,
      creator_id: tail.creator.id,
      expires_on: tail.expiresOn,
      holder,
      is_connected: 0,
      seen_on: now,
    })
    .execute();
}

export async function claim(trx: Write, id: string, holder: string, now: number): Promise<void> {
  await trx
    .updateTable("tails")
    .set({ holder, is_connected: 1, seen_on: now })
    .where("id", "=", id)
    .execute();
}

export async function touch(trx: Write, holder: string, now: number): Promise<void> {
  await trx.updateTable("tails").set({ seen_on: now }).where("holder", "=", holder).execute();
}

/** With a holder, removes only tails that the holder still has. */
export async function remove(trx: Write, ids: readonly string[], holder?: string): Promise<void> {
  if (ids.length === 0) return;
  await trx
    .deleteFrom("tails")
    .where("id", "in", ids)
    .$if(holder !== undefined, (query) => query.where("holder", "=", holder!))
    .execute();
}

/** Events of tails that have ended are dropped. */
export async function addEvents(
  trx: Write,
  events: readonly { tailId: string; event: string }[],
): Promise<void> {
  const ids = [...new Set(events.map(({ tailId }) => tailId))];
  const rows = await trx.selectFrom("tails").select("id").where("id", "in", ids).execute();
  const known = new Set(rows.map(({ id }) => id));
  const values = events
    .filter(({ tailId }) => known.has(tailId))
    .map(({ tailId, event }) => ({ tail_id: tailId, event }));
  if (values.length > 0) await trx.insertInto("tail_events").values(values).execute();
}

/** Reads and deletes the oldest events of tails. */
export async function takeEvents(
  trx: Write,
  tailIds: readonly string[],
  limit: number,
): Promise<{ tailId: string; event: string }[]> {
  const rows = await trx
    .selectFrom("tail_events")
    .selectAll()
    .where("tail_id", "in", tailIds)
    .orderBy("number")
    .limit(limit)
    .execute();
  if (rows.length > 0)
    await trx
      .deleteFrom("tail_events")
      .where(
        "number",
        "in",
        rows.map(({ number }) => number),
      )
      .execute();
  return rows.map((row) => ({ tailId: row.tail_id, event: row.event }));
}
