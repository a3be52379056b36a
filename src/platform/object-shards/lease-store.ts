import { randomInt } from "node:crypto";
import { sql } from "kysely";
import type { Read } from "../storage/storage.ts";
import type { LeaseStore, LeaseView, TakenShard } from "./lease.ts";

/** How long a transaction waits for its next statement. */
const idleMsMax = "5000";

/** At random: after a failover to a server that lagged behind, a sequence gives out numbers of leases again. */
const newLease = (): number => randomInt(1, 2 ** 48 - 1);

type Terms = readonly Pick<TakenShard, "shard" | "term">[];

const pairsOf = (shards: Terms) =>
  sql.join(shards.map(({ shard, term }) => sql`(${shard}::int, ${term}::bigint)`));

async function isLive(trx: Read, id: number): Promise<boolean> {
  const { rows } = await sql`
    select id from object_nodes where id = ${id} and has_ended = 0 for share`.execute(trx);
  return rows.length > 0;
}

async function endAll(trx: Read, ids: readonly number[]): Promise<void> {
  await sql`update object_nodes set has_ended = 1 where id = any(${ids})`.execute(trx);
  await sql`update object_shards set owner = null where owner = any(${ids})`.execute(trx);
}

/** The leases on shards of objects in PostgreSQL, for one node and one run of it. */
export class StoredLeases implements LeaseStore {
  readonly #read: Read;
  readonly #node: string;
  readonly #run: string;
  readonly #address: string;

  /** `address`: where other nodes reach it. */
  constructor(read: Read, { id, run }: { id: string; run: string }, address: string) {
    this.#read = read;
    this.#node = id;
    this.#run = run;
    this.#address = address;
  }

  /** Ends, with its locks, if this process is suspended in it: others could not end its lease. */
  async #transaction<T>(work: (trx: Read) => Promise<T>): Promise<T> {
    return this.#read.transaction().execute(async (trx) => {
      await sql`select set_config('idle_in_transaction_session_timeout', ${idleMsMax}, true)`.execute(trx);
      return work(trx);
    });
  }

  async begin(leaseMs: number, attempt: number): Promise<number> {
    const [node, run] = [this.#node, this.#run];
    return this.#transaction(async (trx) => {
      const current = await sql`
        select id from nodes where id = ${node} and run = ${run} for update`.execute(trx);
      if (current.rows.length === 0) throw new Error("Another process runs as this node");
      const { rows: before } = await sql<{ id: number; isLater: boolean }>`
        select id, run = ${run} and attempt >= ${attempt} as "isLater" from object_nodes
        where node = ${node} and has_ended = 0 for update`.execute(trx);
      if (before.some(({ isLater }) => isLater)) throw new Error("A later lease of this node has begun");
      await endAll(
        trx,
        before.map(({ id }) => id),
      );
      await sql`delete from object_nodes where has_ended = 1 and node = ${node} and run <> ${run}
        and id not in (select last from object_shards where last is not null)`.execute(trx);
      const { rows } = await sql<{ id: number }>`
        insert into object_nodes (id, node, run, attempt, address, lease_ms, beats, leaves, has_ended)
        overriding system value
        values (${newLease()}, ${node}, ${run}, ${attempt}, ${this.#address}, ${leaseMs}, 0, 0, 0)
        returning id`.execute(trx);
      return rows[0]!.id;
    });
  }

  async beat(id: number): Promise<LeaseView | undefined> {
    const { rows } = await sql`update object_nodes set beats = beats + 1
      where id = ${id} and has_ended = 0 returning id`.execute(this.#read);
    return rows.length === 0 ? undefined : viewOf(this.#read);
  }

  async end(id: number, beats: number): Promise<void> {
    await this.#transaction(async (trx) => {
      const { rows } = await sql`select id from object_nodes
        where id = ${id} and has_ended = 0 and beats = ${beats} for update`.execute(trx);
      if (rows.length > 0) await endAll(trx, [id]);
    });
  }

  async take(id: number, count: number, first: readonly number[]): Promise<TakenShard[]> {
    return this.#transaction(async (trx) => {
      if (!(await isLive(trx, id))) return [];
      const { rows } = await sql<TakenShard>`
        update object_shards set owner = ${id}, term = term + 1 where shard in (
          select shard from object_shards where owner is null
          order by shard = any(${first}) desc, shard limit ${count} for update skip locked)
        returning shard, term, last`.execute(trx);
      return rows;
    });
  }

  async confirm(id: number, shards: Terms): Promise<void> {
    await this.#transaction(async (trx) => {
      if (!(await isLive(trx, id))) throw new Error("The lease on shards has ended");
      await sql`update object_shards set last = ${id}
        where owner = ${id} and (shard, term) in (${pairsOf(shards)})`.execute(trx);
    });
  }

  async release(id: number, shards: Terms): Promise<void> {
    await sql`update object_shards set owner = null
      where owner = ${id} and (shard, term) in (${pairsOf(shards)})`.execute(this.#read);
  }

  async leave(id: number): Promise<void> {
    await sql`update object_nodes set leaves = 1 where id = ${id}`.execute(this.#read);
  }

  async finish(id: number): Promise<void> {
    await this.#transaction(async (trx) => endAll(trx, [id]));
  }
}

async function viewOf(read: Read): Promise<LeaseView> {
  const nodes = await sql<{ id: number; address: string; lease_ms: number; beats: number; leaves: number }>`
    select id, address, lease_ms, beats, leaves from object_nodes where has_ended = 0`.execute(read);
  const shards = await sql<{ shard: number; owner: number; term: number }>`
    select shard, owner, term from object_shards where owner is not null`.execute(read);
  return {
    nodes: nodes.rows.map(({ id, address, lease_ms: leaseMs, beats, leaves }) => ({
      ...{ id, address, leaseMs, beats },
      isLeaving: leaves === 1,
    })),
    owners: new Map(shards.rows.map(({ shard, owner, term }) => [shard, { owner, term }])),
  };
}
