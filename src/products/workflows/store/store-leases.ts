import { sql } from "kysely";
import type { Read } from "../../../platform/storage/storage.ts";
import type { Lease } from "./writer.ts";

/** Leases of nodes on shards, and commands between nodes. PostgreSQL only, and timed by its clock. */
export const leaseSeconds = 10;
const until = sql`now() + ${sql.raw(`interval '${leaseSeconds} seconds'`)}`;
type LeaseRow = { id: number; term: number | string };
const toLease = ({ id, term }: LeaseRow): Lease => ({ shard: id, term: Number(term) });

/** Records that the node is alive and returns the number of live nodes. */
export async function beat(read: Read, node: string): Promise<number> {
  await sql`insert into workflow_nodes (id, lease_until) values (${node}, ${until})
    on conflict (id) do update set lease_until = excluded.lease_until`.execute(read);
  await sql`delete from workflow_nodes where lease_until < now() - interval '1 minute'`.execute(read);
  // A live node that has had nothing to write keeps its mark, however old that is.
  await sql`delete from workflow_marks where at < now() - interval '1 day'
    and node not in (select id from workflow_nodes)`.execute(read);
  const { rows } = await sql<{ count: number | string }>`
    select count(*) as count from workflow_nodes where lease_until > now()`.execute(read);
  return Number(rows[0]!.count);
}

export async function renew(read: Read, node: string): Promise<Lease[]> {
  const { rows } = await sql<LeaseRow>`update workflow_shards set lease_until = ${until}
    where owner = ${node} returning id, term`.execute(read);
  return rows.map(toLease);
}

/**
 * Starts a new term for shards that the node still owns in the database but dropped, which voids its old
 * term.
 */
export async function retake(read: Read, node: string, shards: readonly number[]): Promise<Lease[]> {
  if (shards.length === 0) return [];
  const { rows } = await sql<LeaseRow>`update workflow_shards set term = term + 1, lease_until = ${until}
    where owner = ${node} and id in (${sql.join(shards)}) returning id, term`.execute(read);
  return rows.map(toLease);
}

/** Takes free shards. */
export async function take(read: Read, node: string, count: number): Promise<Lease[]> {
  const { rows } =
    await sql<LeaseRow>`update workflow_shards set owner = ${node}, term = term + 1, lease_until = ${until}
    where id in (
      select id from workflow_shards where owner is null or lease_until < now()
      order by id limit ${count} for update skip locked)
    returning id, term`.execute(read);
  return rows.map(toLease);
}

export async function release(read: Read, node: string, shards: readonly number[]): Promise<void> {
  if (shards.length === 0) return;
  await sql`update workflow_shards set owner = null where owner = ${node} and id in (${sql.join(shards)})`.execute(
    read,
  );
}

/** Releases the leases of a node, except the one on the shard `kept`, and no longer counts the node as live. */
export async function leave(read: Read, node: string, kept?: number): Promise<void> {
  await sql`update workflow_shards set owner = null where owner = ${node} and id <> ${kept ?? -1}`.execute(
    read,
  );
  await sql`delete from workflow_nodes where id = ${node}`.execute(read);
}

export async function sendCommand(read: Read, shard: number, command: string): Promise<number> {
  const { rows } = await sql<{ id: number | string }>`
    insert into workflow_commands (shard, command) values (${shard}, ${command}) returning id`.execute(read);
  return Number(rows[0]!.id);
}

/** Commands for instances of these shards, and whether some shard has no owner. */
export async function poll(
  read: Read,
  shards: readonly number[],
): Promise<{ commands: { id: number; command: string }[]; areShardsFree: boolean }> {
  const { rows } = await sql<{ id: number | string | null; command: string | null; isFree: boolean }>`
    select free.is_free as "isFree", commands.id, commands.command
    from (select exists (select 1 from workflow_shards where owner is null) as is_free) as free
    left join (
      select id, command from workflow_commands where answer is null
      and shard in (${sql.join(shards.length === 0 ? [-1] : shards)}) order by id limit 500
    ) as commands on true order by commands.id`.execute(read);
  return {
    commands: rows.flatMap(({ id, command }) =>
      id === null || command === null ? [] : [{ id: Number(id), command }],
    ),
    areShardsFree: rows[0]!.isFree,
  };
}

export async function answerCommand(read: Read, id: number, answer: string): Promise<void> {
  await sql`update workflow_commands set answer = ${answer} where id = ${id}`.execute(read);
}

/** The answer of a command, once there is one. Reading it deletes the command. */
export async function takeAnswer(read: Read, id: number): Promise<string | undefined> {
  const { rows } = await sql<{ answer: string }>`
    delete from workflow_commands where id = ${id} and answer is not null returning answer`.execute(read);
  return rows[0]?.answer;
}

/** Withdraws a command; false when it was answered in the meantime. */
export async function withdraw(read: Read, id: number): Promise<boolean> {
  const { numAffectedRows } =
    await sql`delete from workflow_commands where id = ${id} and answer is null`.execute(read);
  return Number(numAffectedRows ?? 0) > 0;
}

export async function forgetOldCommands(read: Read): Promise<void> {
  await sql`delete from workflow_commands where sent_on < now() - interval '5 minutes'`.execute(read);
}
