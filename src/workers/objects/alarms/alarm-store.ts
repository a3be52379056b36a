import { sql } from "kysely";
import type { ShardRight } from "../../../platform/object-shards/lease.ts";
import type { Storage } from "../../../platform/storage/storage.ts";
import type { RunLimits } from "../../runtime/run-context.ts";
import type { OutboundScript } from "../../runtime/run-parts.ts";

/** The data of a run that no request begins: the object's name, and a customer's last dispatch. */
export interface ActingOrigin {
  name?: string | undefined;
  jurisdiction?: string | undefined;
  limits?: Partial<RunLimits> | undefined;
  outbound?: OutboundScript | undefined;
}

/** When an object has to be asked for its alarm. */
export interface StoredAlarm {
  namespace: string;
  id: string;
  /** Milliseconds since 1970. */
  due: number;
  retries: number;
  origin: ActingOrigin;
}

/** An alarm to write, or to remove. */
export interface AlarmChange {
  namespace: string;
  id: string;
  alarm: StoredAlarm | undefined;
}

/** The right of this node to write what belongs to a namespace; undefined if another node may have it. */
export type RightTo = (namespace: string) => ShardRight | undefined;

/** Other nodes have these namespaces, so that nothing of them was written. Everything else was. */
export class NotOwner extends Error {
  readonly namespaces: ReadonlySet<string>;

  constructor(namespaces: ReadonlySet<string>) {
    super("Another node has the objects of these alarms");
    this.namespaces = namespaces;
  }
}

const rowsMax = 500;

export async function loadAlarms({ read }: Storage): Promise<StoredAlarm[]> {
  const rows = await read.selectFrom("object_alarms").selectAll().execute();
  return rows.map((row) => ({
    namespace: row.namespace_id,
    id: row.object_id,
    due: row.due,
    retries: row.retries,
    origin: JSON.parse(row.origin) as ActingOrigin,
  }));
}

/** Writes changes of alarms in one transaction. Resolves when it is on disk. */
export async function writeAlarms(storage: Storage, changes: readonly AlarmChange[]): Promise<void> {
  await storage.write(async (trx) => {
    const [removed, set] = [changes.filter(({ alarm }) => alarm === undefined), changes.filter(isSet)];
    for (let i = 0; i < removed.length; i += rowsMax) {
      const keys = removed.slice(i, i + rowsMax).map(({ namespace, id }) => sql`(${namespace}, ${id})`);
      await sql`delete from object_alarms where (namespace_id, object_id) in (values ${sql.join(keys)})`.execute(
        trx,
      );
    }
    if (set.length === 0) return;
    const found = await trx
      .selectFrom("object_namespaces")
      .select("id")
      .where("id", "in", [...new Set(set.map(({ namespace }) => namespace))])
      .execute();
    const existing = new Set(found.map(({ id }) => id));
    const rows = set.filter(({ namespace }) => existing.has(namespace)).map(({ alarm }) => rowOf(alarm));
    for (let i = 0; i < rows.length; i += rowsMax)
      await trx
        .insertInto("object_alarms")
        .values(rows.slice(i, i + rowsMax))
        .onConflict((conflict) =>
          conflict.columns(["namespace_id", "object_id"]).doUpdateSet((eb) => ({
            due: eb.ref("excluded.due"),
            retries: eb.ref("excluded.retries"),
            origin: eb.ref("excluded.origin"),
          })),
        )
        .execute();
  });
}

/**
 * Writes changes of alarms on PostgreSQL, with one statement, which locks the leases of their shards: nothing is written for
 * a shard that another node has. Throws NotOwner for those.
 */
export async function writeOwnAlarms(
  { read }: Storage,
  changes: readonly AlarmChange[],
  rightTo: RightTo,
): Promise<void> {
  const given = changes.map((change) => ({ ...change, right: rightTo(change.namespace) }));
  const rights = new Map(given.flatMap(({ right }) => (right === undefined ? [] : [[right.shard, right]])));
  const [right] = rights.values();
  const own = given.filter((each) => each.right !== undefined);
  const { rows } = await sql<{ shard: number }>`
    with lease as materialized (
        select id from object_nodes where id = ${right?.lease ?? null} and has_ended = 0 for share),
      owned as materialized (
        select shard from object_shards where owner in (select id from lease) and (shard, term) in (
          select * from unnest(${[...rights.keys()]}::integer[], ${[...rights.values()].map(({ term }) => term)}::bigint[]))
        for share),
      given as materialized (
        select * from unnest(${own.map((each) => each.right!.shard)}::integer[],
          ${own.map(({ namespace }) => namespace)}::text[], ${own.map(({ id }) => id)}::text[],
          ${own.map(({ alarm }) => alarm?.due)}::bigint[], ${own.map(({ alarm }) => alarm?.retries)}::integer[],
          ${own.map(({ alarm }) => alarm && JSON.stringify(alarm.origin))}::text[])
          as each (shard, namespace_id, object_id, due, retries, origin)
        where shard in (select shard from owned)),
      removed as (
        delete from object_alarms as alarm using given
        where given.due is null and alarm.namespace_id = given.namespace_id and alarm.object_id = given.object_id),
      written as (
        insert into object_alarms (namespace_id, object_id, due, retries, origin)
        select namespace_id, object_id, due, retries, origin from given
        where due is not null and namespace_id in (select id from object_namespaces)
        on conflict (namespace_id, object_id) do update
          set due = excluded.due, retries = excluded.retries, origin = excluded.origin)
    select shard from owned`.execute(read);
  const owned = new Set(rows.map(({ shard }) => shard));
  const lost = given.filter((each) => each.right === undefined || !owned.has(each.right.shard));
  if (lost.length > 0) throw new NotOwner(new Set(lost.map(({ namespace }) => namespace)));
}

const isSet = (change: AlarmChange): change is AlarmChange & { alarm: StoredAlarm } =>
  change.alarm !== undefined;

const rowOf = ({ namespace, id, due, retries, origin }: StoredAlarm) => ({
  namespace_id: namespace,
  object_id: id,
  due,
  retries,
  origin: JSON.stringify(origin),
});
