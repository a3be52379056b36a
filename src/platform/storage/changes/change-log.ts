import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import type { Change, Read, Write } from "../storage.ts";
import { leastSeq } from "../nodes/node-store.ts";

/** The channel of NOTIFY. The payload is the notifying node's token, a space, and the number of the change. */
export const changesChannel = "selvedge_changes";

/** Identifies a committed transaction in the log. */
export interface TransactionId {
  seq: number;
  /** Epoch milliseconds by the database's clock. With `seq` it identifies the transaction. */
  loggedOn: number;
}

const keptDefaults = { keptMs: 60 * 60 * 1000, rowsMax: 1_000_000 };
/**
 * PostgreSQL ends a transaction that neither commits nor rolls back within this time after its last statement,
 * because it keeps every other node from writing: its process may be stopped, or its machine gone.
 */
const idleMsMax = "10000";
/** Maximum count of numbers whose changes one statement deletes. */
const prunedAtOnce = 10_000;

/**
 * The log through which nodes on one PostgreSQL database notify each other of changes. Each transaction with
 * changes takes the next number from one row, `change_head`, with its last statement. The row stays locked
 * until the transaction ends, so numbers become visible in their order and without gaps, and a transaction that
 * is rolled back leaves none. Transactions without changes, and those of other programs, do not delay it.
 */
export class ChangeLog {
  /** Tells this node's notifications from those of others. */
  readonly token = randomUUID();

  /** Logs the changes of a transaction, as its last statement. Throws if the counter row is missing. */
  async append(trx: Write, changes: readonly Change[]): Promise<TransactionId> {
    const kinds = changes.map(({ kind }) => kind);
    const ids = changes.map(({ id }) => id);
    const parentIds = changes.map(({ parentId }) => parentId ?? null);
    const { rows } = await sql<TransactionId>`
      with head as (
        update change_head set seq = seq + 1 where one = 1
        returning seq, (extract(epoch from clock_timestamp()) * 1000)::bigint as logged_on
      ), logged as (
        insert into changes (seq, n, total, kind, id, parent_id, logged_on)
        select head.seq, change.n, ${changes.length}, change.kind, change.id, change.parent_id, head.logged_on
        from head, unnest(${kinds}::text[], ${ids}::text[], ${parentIds}::text[])
          with ordinality as change (kind, id, parent_id, n)
      )
      select seq, logged_on as "loggedOn", pg_notify(${changesChannel}, ${this.token} || ' ' || seq),
        set_config('idle_in_transaction_session_timeout', ${idleMsMax}, true)
      from head`.execute(trx);
    const row = rows[0];
    if (row === undefined)
      throw new Error("The table change_head has no row, so other nodes would not see this change");
    return { seq: row.seq, loggedOn: row.loggedOn };
  }
}

/**
 * Deletes changes that no live node needs and that are older than an hour, and all but the last million. A
 * node that needed a deleted one notices the gap. The last change stays, because nodes compare it with what
 * they have seen.
 */
export async function pruneChanges(read: Read, { keptMs, rowsMax } = keptDefaults): Promise<void> {
  const { rows: heads } = await sql<{ seq: number }>`select seq from change_head`.execute(read);
  const { rows: beyond } = await sql<{ seq: number }>`
    select seq from changes order by seq desc, n desc offset ${rowsMax} limit 1`.execute(read);
  const head = heads[0]?.seq ?? 0;
  const needed = Math.min(head, (await leastSeq(read)) ?? head);
  const crowded = Math.min(head, (beyond[0]?.seq ?? -1) + 1);
  for (;;) {
    const { rows: first } = await sql<{ seq: number | null }>`select min(seq) as seq from changes`.execute(
      read,
    );
    const from = first[0]?.seq;
    if (from == null) return;
    const { numAffectedRows } = await sql`
      delete from changes where seq < ${from + prunedAtOnce} and (seq < ${crowded} or (seq < ${needed}
        and logged_on < (extract(epoch from clock_timestamp()) * 1000)::bigint - ${keptMs}::bigint))`.execute(
      read,
    );
    if (numAffectedRows === undefined || numAffectedRows === 0n) return;
  }
}
