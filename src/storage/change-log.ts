import { sql } from "kysely";
import type { Change, Read, Write } from "./storage.ts";

/** Rows of one insert: PostgreSQL takes at most 65,535 parameters in a statement. */
const rowsPerInsertMax = 10_000;
const keptMs = 60 * 60 * 1000;
const pruneIntervalMs = 5 * 60 * 1000;

/**
 * The log of changes that nodes on one PostgreSQL database tell each other by. Rows are followed by the id of the
 * transaction that wrote them, and only up to the oldest one still running: sequence numbers become visible out of
 * order, transactions below that mark are all decided, so no row can be missed, however long its transaction took.
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

  /** From here on: everything that is committed after this call will be in `next`. */
  async start(): Promise<void> {
    const { rows } = await sql<{ horizon: string }>`
      select pg_snapshot_xmin(pg_current_snapshot())::text as horizon`.execute(this.#read);
    this.#horizon = rows[0]!.horizon;
  }

  /** Hands over what other nodes have committed since the last call; when `handle` throws, the next call does it again. */
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

  /** An hour of the log is kept: a node that polls twice a second has long seen the rest. */
  async #prune(): Promise<void> {
    if (Date.now() - this.#prunedAtMs < pruneIntervalMs) return;
    this.#prunedAtMs = Date.now();
    await this.#read
      .deleteFrom("changes")
      .where("logged_on", "<", Date.now() - keptMs)
      .execute();
  }
}
