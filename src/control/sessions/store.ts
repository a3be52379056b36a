import type { Read, Write } from "../../platform/storage/storage.ts";

/** A sign-in at the console, as it is stored. */
export interface StoredSession {
  id: string;
  tokenId: string;
  tokenHash: string;
  createdOn: number;
  lastUsedOn: number;
}

export async function find(read: Read, id: string): Promise<StoredSession | undefined> {
  const row = await read.selectFrom("dashboard_sessions").selectAll().where("id", "=", id).executeTakeFirst();
  return (
    row && {
      id: row.id,
      tokenId: row.token_id,
      tokenHash: row.token_hash,
      createdOn: row.created_on,
      lastUsedOn: row.last_used_on,
    }
  );
}

/** Adds a session and removes expired ones. Each token keeps its newest `max` sessions. */
export async function insert(
  trx: Write,
  session: StoredSession,
  over: { createdBefore: number; usedBefore: number; max: number },
): Promise<string[]> {
  await trx
    .insertInto("dashboard_sessions")
    .values({
      id: session.id,
      token_id: session.tokenId,
      token_hash: session.tokenHash,
      created_on: session.createdOn,
      last_used_on: session.lastUsedOn,
    })
    .execute();
  const surplus = await trx
    .selectFrom("dashboard_sessions")
    .select("id")
    .where("token_id", "=", session.tokenId)
    .orderBy("created_on", "desc")
    .orderBy("id")
    .offset(over.max)
    .limit(1000)
    .execute();
  const removed = await trx
    .deleteFrom("dashboard_sessions")
    .where((each) =>
      each.or([
        each("created_on", "<", over.createdBefore),
        each("last_used_on", "<", over.usedBefore),
        each("id", "in", ["", ...surplus.map(({ id }) => id)]),
      ]),
    )
    .returning("id")
    .execute();
  return removed.map(({ id }) => id);
}

export async function touch(trx: Write, id: string, lastUsedOn: number): Promise<void> {
  await trx
    .updateTable("dashboard_sessions")
    .set({ last_used_on: lastUsedOn })
    .where("id", "=", id)
    .execute();
}

export async function remove(trx: Write, id: string): Promise<void> {
  await trx.deleteFrom("dashboard_sessions").where("id", "=", id).execute();
}
