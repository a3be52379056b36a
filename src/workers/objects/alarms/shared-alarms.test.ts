import { randomUUID } from "node:crypto";
import { pino } from "pino";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { addObjectNamespaces } from "../../../../test/helpers/object-namespaces.ts";
import { startPostgres, type TestPostgres } from "../../../../test/helpers/postgres.ts";
import { StoredLeases } from "../../../platform/object-shards/lease-store.ts";
import { shardOf } from "../../../platform/object-shards/shard.ts";
import { openStorage, type Storage } from "../../../platform/storage/storage.ts";
import { loadAlarms, NotOwner, type RightTo, type StoredAlarm } from "./alarm-store.ts";
import { AlarmWrites } from "./alarm-writes.ts";
import { Alarms } from "./alarms.ts";

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

const namespace = `01${"a".repeat(30)}`;
const kept = `ff${"b".repeat(30)}`;
const alarmOf = (due: number, id = "1", of = namespace): StoredAlarm => ({
  ...{ namespace: of, id, due, retries: 0, origin: {} },
});

async function open() {
  const storage = await openStorage(await postgres.createMigrated());
  onTestFinished(() => storage.close());
  await addObjectNamespaces(storage, [namespace, kept]);
  return storage;
}

/** A node with a lease. It goes on to trust what it has taken, as one that was suspended does. */
async function startOwner(storage: Storage) {
  const [id, run] = [randomUUID(), randomUUID()];
  await storage.read
    .insertInto("nodes")
    .values({
      ...{ id, run, name: "", place: "", pid: 1, version: "", blobs: "", started_on: 0, seen_on: 0 },
    })
    .execute();
  const leases = new StoredLeases(storage.read, { id, run }, "");
  const lease = await leases.begin(1000, 1);
  const terms = new Map<number, number>();
  const take = async (count: number): Promise<void> => {
    for (const { shard, term } of await leases.take(lease, count, [])) terms.set(shard, term);
  };
  const rightTo: RightTo = (of) => {
    const shard = shardOf(of);
    const term = terms.get(shard);
    return term === undefined ? undefined : { lease, shard, term };
  };
  const writes = new AlarmWrites(storage, pino({ level: "silent" }), rightTo);
  return { leases, lease, terms, take, writes, rightTo };
}
const stored = async (storage: Storage): Promise<StoredAlarm[]> =>
  (await loadAlarms(storage)).toSorted((a, b) => a.due - b.due);

it("an owner whose lease another node has ended neither writes nor removes alarms", async () => {
  const storage = await open();
  const [old, next] = [await startOwner(storage), await startOwner(storage)];
  await old.take(64);
  old.writes.note(namespace, "1", alarmOf(1));
  await old.writes.write();
  expect(await stored(storage)).toEqual([alarmOf(1)]);
  await next.leases.end(old.lease, 0);
  await next.take(64);
  next.writes.note(namespace, "2", alarmOf(2, "2"));
  await next.writes.write();
  for (const alarm of [alarmOf(9), undefined]) {
    old.writes.note(namespace, "1", alarm);
    old.writes.note(namespace, "2", alarm && { ...alarm, id: "2" });
    await expect(old.writes.write()).rejects.toThrow(NotOwner);
    expect(await stored(storage)).toEqual([alarmOf(1), alarmOf(2, "2")]);
  }
  await old.writes.write(); // nothing of it is tried again
  next.writes.note(namespace, "1", undefined);
  await next.writes.write();
  expect(await stored(storage)).toEqual([alarmOf(2, "2")]);
});

it("an owner of other shards writes only what is its own, and nothing of a term that is over", async () => {
  const storage = await open();
  const [first, second] = [await startOwner(storage), await startOwner(storage)];
  await first.take(64);
  const shard = shardOf(namespace);
  expect(shardOf(kept)).not.toBe(shard);
  const before = first.terms.get(shard)!;
  await first.leases.release(first.lease, [{ shard, term: before }]);
  await second.take(1);
  expect([...second.terms.keys()]).toEqual([shard]);
  const write = async (): Promise<void> => {
    first.writes.note(namespace, "1", alarmOf(1));
    first.writes.note(kept, "1", alarmOf(2, "1", kept));
    await first.writes.write();
  };
  await expect(write()).rejects.toThrow(NotOwner);
  expect(await stored(storage)).toEqual([alarmOf(2, "1", kept)]);
  await second.leases.release(second.lease, [{ shard, term: second.terms.get(shard)! }]);
  await first.take(1);
  const again = first.terms.get(shard)!;
  first.terms.set(shard, before); // a statement that arrives late
  await expect(write()).rejects.toThrow(NotOwner);
  first.terms.set(shard, again);
  await write();
  expect(await stored(storage)).toEqual([alarmOf(1), alarmOf(2, "1", kept)]);
});

it("an alarm that has failed, and one of another owner, keep no others from being written", async () => {
  const storage = await open();
  const owner = await startOwner(storage);
  await owner.take(64);
  const runner = {
    ownerOf: () => "owner",
    originOf: () => ({}),
    run: async () => Promise.reject(new Error("no cell")),
  };
  const alarms = new Alarms(storage, runner, pino({ level: "silent" }), (of) => owner.rightTo(of));
  onTestFinished(alarms.start());
  await alarms.note({ namespace, id: "failing" }, { due: 1, instance: 1, number: 1 });
  await expect.poll(() => alarms.counts.failed).toBe(1);
  const due = 9_000_000_000_000;
  await alarms.note({ namespace: kept, id: "1" }, { due, instance: 1, number: 1 });
  const written = await stored(storage);
  expect(written.map(({ id, retries }) => [id, retries])).toEqual([["failing", 0], ["1", 0]]); // prettier-ignore
  expect(written[0]!.due).toBeGreaterThan(1);
  const shard = shardOf(namespace);
  await owner.leases.release(owner.lease, [{ shard, term: owner.terms.get(shard)! }]);
  const notes = [namespace, kept].map(async (of) =>
    alarms.note({ namespace: of, id: "2" }, { due, instance: 1, number: 1 }),
  );
  expect((await Promise.allSettled(notes)).map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
  expect((await stored(storage)).map(({ id }) => id).sort()).toEqual(["1", "2", "failing"]);
});
