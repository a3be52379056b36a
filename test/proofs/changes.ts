/**
 * Nodes on one PostgreSQL database, the long form of src/platform/storage/changes/follower.test.ts:
 *
 *   node test/proofs/changes.ts [WRITES] [SECONDS]
 *
 * 8 writers on two nodes make WRITES (1000) changes each, with random rollbacks, while transactions are open in
 * this database and in another for the whole time. No number may be missing, and both nodes must know what storage
 * has. Then SECONDS (20) of single changes: how long until the other node has them, with and without
 * notifications; configuration writes in a second; and the CPU time of a node that has nothing to do.
 */
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { sql } from "kysely";
import { Client } from "pg";
import { nothingToReload } from "../../src/platform/storage/changes/listeners.ts";
import { openStorage, type Storage } from "../../src/platform/storage/storage.ts";
import type { FollowIntervals } from "../../src/platform/storage/changes/follower.ts";
import { startPooler } from "../helpers/pooler.ts";
import { startPostgres } from "../helpers/postgres.ts";

const [writes, seconds] = [Number(process.argv[2] ?? 1000), Number(process.argv[3] ?? 20)];
const usual: FollowIntervals = { everyMs: 500, whileNotifiedMs: 5000 };

interface Node {
  storage: Storage;
  known: Map<string, string>;
  /** When a key was last changed here, in the time of `performance.now()`. */
  seenMs: Map<string, number>;
}

async function nodeOf(url: string): Promise<Node> {
  const storage = await openStorage(url);
  const known = new Map<string, string>();
  const seenMs = new Map<string, number>();
  storage.onChange(async (changes) => {
    const keys = [...new Set(changes.map(({ id }) => id))];
    const rows = await storage.read.selectFrom("meta").selectAll().where("key", "in", keys).execute();
    for (const { key, value } of rows) known.set(key, value);
    for (const key of keys) seenMs.set(key, performance.now());
  }, nothingToReload);
  await storage.watch();
  storage.follow(usual);
  return { storage, known, seenMs };
}

async function write({ storage }: Node, key: string, value: string, isUndone = false): Promise<void> {
  await storage.write(async (trx, changed) => {
    await trx
      .insertInto("meta")
      .values({ key, value })
      .onConflict((conflict) => conflict.column("key").doUpdateSet({ value }))
      .execute();
    changed({ kind: "zone", id: key });
    if (isUndone) throw new Error("undone");
  });
}

const quantile = (values: readonly number[], q: number): string =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))]!.toFixed(1);

async function inTurns(first: Node, second: Node): Promise<void> {
  let undone = 0;
  const start = performance.now();
  await Promise.all(
    Array.from({ length: 8 }, async (_, writer) => {
      for (let n = 0; n < writes; n++) {
        const isUndone = Math.random() < 0.2;
        if (isUndone) undone++;
        const writing = write(
          writer % 2 === 0 ? first : second,
          `${Math.floor(Math.random() * 500)}`,
          `${writer} ${n}`,
          isUndone,
        );
        if (isUndone) await assert.rejects(writing, /undone/);
        else await writing;
      }
    }),
  );
  const wallSeconds = (performance.now() - start) / 1000;
  const committed = 8 * writes - undone;
  const { rows } = await sql<{ rows: number; highest: number; head: number }>`
    select count(*) as rows, max(changes.seq) as highest, max(change_head.seq) as head
    from changes, change_head`.execute(first.storage.read);
  assert.deepEqual(rows, [{ rows: committed, highest: committed, head: committed }]);
  const stored = await first.storage.read.selectFrom("meta").selectAll().execute();
  for (const { storage, known } of [first, second]) {
    assert.ok(await storage.following!.reaches(committed, 10_000));
    for (const { key, value } of stored) assert.equal(known.get(key) ?? value, value);
    assert.deepEqual(storage.following!.reloads, { missing: 0, rewritten: 0 });
  }
  console.log(
    `8 writers, two nodes: ${committed} changes without a hole, ${undone} undone, ${(committed / wallSeconds).toFixed(0)} changes/s`,
  );
}

async function visibility(what: string, first: Node, second: Node, forSeconds: number): Promise<void> {
  const latencies: number[] = [];
  for (let n = 0, end = performance.now() + forSeconds * 1000; performance.now() < end; n++) {
    const key = `${what} ${n}`;
    await write(first, key, "v");
    const committedMs = performance.now();
    while (!second.seenMs.has(key)) await delay(1);
    latencies.push(Math.max(0, second.seenMs.get(key)! - committedMs));
    await delay(Math.random() * 100);
  }
  console.log(
    `${what}: ${latencies.length} changes, elsewhere after p50 ${quantile(latencies, 0.5)} ms, p99 ${quantile(latencies, 0.99)} ms, at most ${quantile(latencies, 1)} ms`,
  );
}

async function writesInASecond(node: Node, writers: number): Promise<void> {
  let count = 0;
  const endMs = performance.now() + 5000;
  const latencies: number[] = [];
  await Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      for (; performance.now() < endMs; count++) {
        const start = performance.now();
        await write(node, `writer ${writer}`, `${count}`);
        latencies.push(performance.now() - start);
      }
    }),
  );
  console.log(
    `${writers} writers: ${(count / 5).toFixed(0)} changes/s, p50 ${quantile(latencies, 0.5)} ms, p99 ${quantile(latencies, 0.99)} ms`,
  );
}

async function idle(what: string, forSeconds: number): Promise<void> {
  const before = process.cpuUsage();
  await delay(forSeconds * 1000);
  const { user, system } = process.cpuUsage(before);
  console.log(`${what}: ${((user + system) / 1000 / forSeconds).toFixed(2)} ms of CPU time in a second`);
}

const postgres = await startPostgres();
const [url, other] = [await postgres.createDatabase(), await postgres.createDatabase()];
const strangers: Client[] = [];
const [first, second] = [await nodeOf(url), await nodeOf(url)];
for (const each of [url, other]) {
  const stranger = new Client(each);
  await stranger.connect();
  await stranger.query("create table strange (id int)");
  await stranger.query("begin");
  await stranger.query("insert into strange values (1)");
  strangers.push(stranger);
}
await inTurns(first, second);
while (!second.storage.following!.isNotified) await delay(20);
await visibility("with notifications", first, second, seconds);
const pooler = await startPooler(url);
const behindPooler = await nodeOf(pooler.url);
await visibility("through a pooler of transactions", first, behindPooler, seconds);
await behindPooler.storage.close();
await pooler.close();
await second.storage.close();
for (const writers of [1, 8]) await writesInASecond(first, writers);
await idle("a node that reads changes, idle", seconds);
for (const stranger of strangers) await stranger.end();
await first.storage.close();
await postgres.stop();
