import { sql, type RawBuilder } from "kysely";
import type { Read, Storage } from "../storage.ts";

/** A node that was not seen for this time counts as ended. */
export const aliveMs = 10_000;
/** The change log keeps changes for a lost node for this time. */
const neededMs = 10 * 60_000;
/** Ended nodes are listed for this time, and at most this many of them. */
const listedMs = 60 * 60_000;
const endedMax = 100;

type Engine = Storage["engine"];

/** One node. Times are epoch milliseconds of the database's clock. */
export interface NodeRow {
  id: string;
  run: string;
  name: string;
  pid: number;
  place: string;
  version: string;
  blobs: string;
  startedOn: number;
  seenOn: number;
  endedOn: number | null;
  seq: number | null;
}

/** A node with the shards of objects that it has. */
export type SeenNode = NodeRow & { isAlive: boolean; shards: number | null };

/** The data that a node writes at its start. */
export type NewNode = Omit<NodeRow, "startedOn" | "seenOn" | "endedOn" | "seq">;

const now = (engine: Engine): RawBuilder<number> =>
  engine === "postgres"
    ? sql`(extract(epoch from clock_timestamp()) * 1000)::bigint`
    : sql`cast(${Date.now()} as integer)`;
const columns = sql`id, run, name, pid, place, version, blobs, seq,
  started_on as "startedOn", seen_on as "seenOn", ended_on as "endedOn"`;

/** The node with an id, and whether it was seen lately. */
export async function find(
  read: Read,
  engine: Engine,
  id: string,
): Promise<(NodeRow & { isAlive: boolean }) | undefined> {
  const { rows } = await sql<NodeRow & { age: number }>`
    select ${columns}, ${now(engine)} - seen_on as age from nodes where id = ${id}`.execute(read);
  return rows.map(({ age, ...row }) => ({ ...row, isAlive: row.endedOn === null && age < aliveMs }))[0];
}

/** Adds the node, or replaces the row of its run `before`. False if another start was faster. */
export async function put(
  read: Read,
  engine: Engine,
  node: NewNode,
  before: string | undefined,
): Promise<boolean> {
  const { id, run, name, pid, place, version, blobs } = node;
  const { rows } =
    before === undefined
      ? await sql`insert into nodes (id, run, name, pid, place, version, blobs, started_on, seen_on)
          values (${id}, ${run}, ${name}, ${pid}, ${place}, ${version}, ${blobs}, ${now(engine)}, ${now(engine)})
          on conflict do nothing returning id`.execute(read)
      : await sql`update nodes set run = ${run}, name = ${name}, pid = ${pid}, place = ${place},
          version = ${version}, blobs = ${blobs}, started_on = ${now(engine)}, seen_on = ${now(engine)},
          ended_on = null, seq = null where id = ${id} and run = ${before} returning id`.execute(read);
  return rows.length > 0;
}

/** Notes that the run is alive. Returns the number of live nodes, or undefined if the row is not the run's any more. */
export async function beat(
  read: Read,
  engine: Engine,
  { id, run }: Pick<NodeRow, "id" | "run">,
  seq: number | undefined,
): Promise<number | undefined> {
  const { rows } = await sql<{ live: number }>`update nodes set seen_on = ${now(engine)},
    ended_on = null, seq = ${seq ?? null} where id = ${id} and run = ${run}
    returning (select count(*) from nodes as others where others.id <> ${id} and others.ended_on is null
      and others.seen_on > ${now(engine)} - ${sql.raw(String(aliveMs))}) + 1 as live`.execute(read);
  return rows[0]?.live;
}

/** Notes that the run was stopped. */
export async function end(
  read: Read,
  engine: Engine,
  { id, run }: Pick<NodeRow, "id" | "run">,
): Promise<void> {
  await sql`update nodes set seen_on = ${now(engine)}, ended_on = ${now(engine)}
    where id = ${id} and run = ${run}`.execute(read);
}

/** The shards of objects that each node has; null where one process has all objects. */
const shardsOf = (engine: Engine): RawBuilder<number | null> =>
  engine === "postgres"
    ? sql`(select count(*) from object_shards join object_nodes on object_nodes.id = object_shards.owner
        where object_nodes.node = nodes.id)`
    : sql`null`;

/** All nodes, those seen last first, and whether each was seen lately. */
export async function list(read: Read, engine: Engine): Promise<SeenNode[]> {
  const { rows } = await sql<Omit<SeenNode, "isAlive"> & { age: number }>`
    select ${columns}, ${now(engine)} - seen_on as age, ${shardsOf(engine)} as shards from nodes
    order by seen_on desc, id limit 1000`.execute(read);
  return rows.map(({ age, ...row }) => ({ ...row, isAlive: row.endedOn === null && age < aliveMs }));
}

/** Deletes nodes that ended or were last seen long ago, and the oldest ended nodes if there are too many. */
export async function forgetEnded(read: Read, engine: Engine): Promise<void> {
  const ended = sql`(ended_on is not null or seen_on < ${now(engine)} - ${sql.raw(String(aliveMs))})`;
  // A lost node may come back within the time for which the change log waits for it.
  await sql`delete from nodes where ${ended} and (seen_on < ${now(engine)} - ${sql.raw(String(listedMs))}
    or id in (select id from nodes where ${ended} and (ended_on is not null
      or seen_on < ${now(engine)} - ${sql.raw(String(neededMs))})
      order by seen_on desc limit 1000 offset ${sql.raw(String(endedMax))}))`.execute(read);
}

/**
 * The least number of a change that some node needs: nodes that were seen in the last ten minutes have taken
 * over all changes up to it. Undefined if no node has reported one. PostgreSQL only.
 */
export async function leastSeq(read: Read): Promise<number | undefined> {
  const { rows } = await sql<{ seq: number | null }>`select min(seq) as seq from nodes
    where ended_on is null and seen_on > ${now("postgres")} - ${sql.raw(String(neededMs))}`.execute(read);
  return rows[0]?.seq ?? undefined;
}
