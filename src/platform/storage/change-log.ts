import { sql } from "kysely";
import type { Change, Read, Write } from "./storage.ts";

/** Rows in one insert. PostgreSQL allows at most 65,535 parameters in a statement. */
const rowsPerInsertMax = 10_000;
const keptMs = 60 * 60 * 1000;
const pruneIntervalMs = 5 * 60 * 1000;

/**
 * The log through which nodes on one PostgreSQL database notify each other of changes. Nodes read rows by the
 * id of the transaction that wrote them, up to the oldest transaction still running. Sequence numbers become
 * visible out of order, but all transactions below that mark have ended, so no row is missed, however long
 * its transaction took.
 */
export class ChangeLog {
  readonly #read: Read;
  readonly #ownSeqs = new Set<number>();
  #horizon = "0";
  #prunedAtMs = Date.now();

  constructor(read: Read) {
    this.#read = read;
  }

  async append(trx: Write, changes: readonly Change[]): Promise<void> {
    const loggedOn = Date.now();
    const rows = changes.map(({ kind, id, parentId }) => ({
      kind,
      id,
      parent_id: parentId ?? null,
      logged_on: loggedOn,
    }));
    for (let at = 0; at < rows.length; at += rowsPerInsertMax) {
      const chunk = rows.slice(at, at + rowsPerInsertMax);
      const inserted = await trx.insertInto("changes").values(chunk).returning("seq").execute();
      for (const { seq } of inserted) this.#ownSeqs.add(seq);
    }
  }

  /** Sets the starting point: `next` returns everything that is committed after this call. */
  async start(): Promise<void> {
    const { rows } = await sql<{ horizon: string }>`
      select pg_snapshot_xmin(pg_current_snapshot())::text as horizon`.execute(this.#read);
    this.#horizon = rows[0]!.horizon;
  }

  /**
   * Passes the changes that other nodes committed since the last call to `handle`. If `handle` throws, the
   * next call repeats them.
   */
  async next(handle: (changes: readonly Change[]) => Promise<void>): Promise<void> {
    const { rows } = await sql<{
      horizon: string;
      seq: number | null;
      kind: string;
      id: string;
      parent_id: string | null;
    }>`
      with mark as materialized (select pg_snapshot_xmin(pg_current_snapshot()) as horizon)
      select mark.horizon::text as horizon, changes.seq, changes.kind, changes.id, changes.parent_id
      from mark left join changes on changes.xid >= ${this.#horizon}::text::xid8 and changes.xid < mark.horizon
      order by changes.seq`.execute(this.#read);
    const changes = rows.flatMap(({ seq, kind, id, parent_id }) => {
      if (seq === null || this.#ownSeqs.has(seq)) return [];
      return [{ kind: kind as Change["kind"], id, ...(parent_id === null ? {} : { parentId: parent_id }) }];
    });
    await handle(changes);
    this.#horizon = rows[0]!.horizon;
    for (const { seq } of rows) if (seq !== null) this.#ownSeqs.delete(seq);
    await this.#prune();
  }

  /** Keeps one hour of the log. Nodes poll twice a second, so they have seen all older rows. */
  async #prune(): Promise<void> {
    if (Date.now() - this.#prunedAtMs < pruneIntervalMs) return;
    this.#prunedAtMs = Date.now();
    await this.#read
      .deleteFrom("changes")
      .where("logged_on", "<", Date.now() - keptMs)
      .execute();
  }
}
