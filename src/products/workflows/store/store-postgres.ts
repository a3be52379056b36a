import { randomUUID } from "node:crypto";
import { CompiledQuery } from "kysely";
import type { Read } from "../../../platform/storage/storage.ts";
import type { WriteBatch } from "./batch.ts";
import { FencedError, StateLost, type Lease } from "./writer.ts";
import { eventColumns, instanceColumns, journalColumns, stateColumns } from "./store-columns.ts";

/**
 * The mark of this node's last commit. Commits follow each other, so if the mark is in the database, everything is that this
 * node has written. It is not after a failover to a server that lagged behind: row ids that this node knows are given out
 * again there.
 */
export class LastCommit {
  #known: string | undefined;
  /** Of a commit whose answer did not arrive. */
  #next: string = randomUUID();

  /** The marks that the database may have; none before the first commit. */
  get expected(): readonly string[] {
    return this.#known === undefined ? [] : [this.#known, this.#next];
  }

  get next(): string {
    return this.#next;
  }

  /** Call it with the answer of a commit. */
  answered(isMarked: boolean): void {
    this.#known = isMarked ? this.#next : undefined;
    this.#next = randomUUID();
  }
}

interface Fence {
  node: string;
  leases: readonly Lease[];
  last: LastCommit;
}

/**
 * Writes a batch on PostgreSQL as one statement: one round trip and one commit. Its first part is the fence,
 * which locks the leases that the batch needs, and compares the mark of the last commit. When a lease or the mark is
 * missing, no other part writes.
 */
export async function postgresCommit(
  read: Read,
  batch: WriteBatch,
  fence: Fence,
): Promise<(number | null)[]> {
  const statement = new Statement(fence);
  statement.insert(
    "workflow_instances",
    instanceColumns,
    batch.creates,
    // Skips instances of workflows that were deleted in the meantime.
    "and exists (select 1 from workflows where rid = u.workflow_rid) on conflict do nothing returning workflow_rid, id, rid",
  );
  statement.update([...batch.updates]);
  statement.insert("workflow_journal", journalColumns, batch.journal);
  statement.insert("workflow_events", eventColumns, batch.events);
  const removed = [...batch.removes];
  if (batch.consumed.length > 0) {
    statement.delete("workflow_events", "rid = u.a and number = u.b", [
      batch.consumed.map(({ rid }) => rid),
      batch.consumed.map(({ number }) => number),
    ]);
  }
  const wipes = [...batch.wipes, ...removed.map((rid) => [rid, 2 ** 31 - 1] as const)];
  if (wipes.length > 0) {
    const runs = [wipes.map(([rid]) => rid), wipes.map(([, run]) => run)] as const;
    statement.delete("workflow_journal", "rid = u.a and run < u.b", runs);
    statement.delete("workflow_events", "rid = u.a", runs);
  }
  if (removed.length > 0) statement.delete("workflow_instances", "rid = u.a", [removed, removed]);

  const { held, created, isMarked } = await statement.run(read);
  fence.last.answered(isMarked);
  if (!isMarked) throw new StateLost(fence.leases);
  const isHeld = ({ shard, term }: Lease): boolean => held.includes(`${shard}/${term}`);
  if (!fence.leases.every(isHeld)) throw new FencedError(fence.leases.filter((lease) => !isHeld(lease)));
  const rids = new Map(created.map((row) => [`${row.workflow_rid}/${row.id}`, row.rid]));
  return batch.creates.map(({ workflowRid, id }) => {
    const key = `${workflowRid}/${id}`;
    const rid = rids.get(key) ?? null;
    rids.delete(key); // for an id that occurs twice in the batch, the first instance wins
    return rid;
  });
}

interface Created {
  workflow_rid: number;
  id: string;
  rid: number;
}

class Statement {
  readonly #parts: string[] = [];
  readonly #values: unknown[] = [];
  #creates = false;

  constructor(fence: Fence) {
    const node = this.#value(fence.node);
    const shards = this.#value(fence.leases.map(({ shard }) => shard));
    const terms = this.#value(fence.leases.map(({ term }) => term));
    this.#parts.push(
      `fence as materialized (select id, term from workflow_shards where owner = ${node} and (id, term) in (select * from unnest(${shards}::integer[], ${terms}::bigint[])) and lease_until > now() for share)`,
      `marked as (${this.#mark(node, fence.last)} returning node)`,
      `held as materialized (select count(*) = cardinality(${shards}::integer[]) and exists (select from marked) as yes from fence)`,
    );
  }

  #mark(node: string, { expected, next }: LastCommit): string {
    const mark = this.#value(next);
    return expected.length === 0
      ? `insert into workflow_marks (node, mark, at) values (${node}, ${mark}, now())
          on conflict (node) do update set mark = excluded.mark, at = excluded.at`
      : `update workflow_marks set mark = ${mark}, at = now()
          where node = ${node} and mark = any(${this.#value(expected)}::text[])`;
  }

  insert<T>(
    table: string,
    {
      names,
      types,
      values,
    }: { names: readonly string[]; types: readonly string[]; values: (row: T) => unknown[] },
    rows: readonly T[],
    more = "",
  ): void {
    if (rows.length === 0) return;
    const arrays = this.#arrays(rows.map(values), types);
    const list = names.map((name) => `"${name}"`).join(", ");
    this.#parts.push(
      `p${this.#parts.length} as (insert into ${table} (${list}) select u.* from unnest(${arrays}) as u(${list}), held where held.yes ${more})`,
    );
    if (more !== "") this.#creates = true;
  }

  update(rows: readonly [rid: number, state: Parameters<typeof stateColumns.values>[0]][]): void {
    if (rows.length === 0) return;
    const arrays = this.#arrays(
      rows.map(([rid, state]) => [rid, ...stateColumns.values(state)]),
      ["bigint", ...stateColumns.types],
    );
    const names = stateColumns.names.map((name) => `"${name}"`);
    this.#parts.push(
      `p${this.#parts.length} as (update workflow_instances as i set ${names.map((name) => `${name} = u.${name}`).join(", ")} from unnest(${arrays}) as u(u_rid, ${names.join(", ")}), held where held.yes and i.rid = u.u_rid)`,
    );
  }

  delete(table: string, condition: string, pairs: readonly [readonly number[], readonly number[]]): void {
    const [a, b] = pairs.map((values) => this.#value(values));
    this.#parts.push(
      `p${this.#parts.length} as (delete from ${table} using unnest(${a}::bigint[], ${b}::bigint[]) as u(a, b), held where held.yes and ${condition})`,
    );
  }

  async run(read: Read): Promise<{ held: string[]; created: Created[]; isMarked: boolean }> {
    const creates = this.#creates
      ? "(select coalesce(json_agg(row_to_json(p3)), '[]'::json) from p3)"
      : "'[]'::json";
    const text = `with ${this.#parts.join(",\n")}\nselect (select coalesce(array_agg(id || '/' || term), '{}') from fence) as held, ${creates} as created, exists (select from marked) as "isMarked"`;
    const { rows } = await read.executeQuery<{ held: string[]; created: Created[]; isMarked: boolean }>(
      CompiledQuery.raw(text, this.#values),
    );
    return rows[0]!;
  }

  #value(value: unknown): string {
    this.#values.push(value);
    return `$${this.#values.length}`;
  }

  /** Passes rows as one array for each column. */
  #arrays(rows: readonly (readonly unknown[])[], types: readonly string[]): string {
    return types
      .map((type, column) => `${this.#value(rows.map((row) => row[column]))}::${type}[]`)
      .join(", ");
  }
}
