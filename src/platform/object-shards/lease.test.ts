import { expect, it } from "vitest";
import { leaseTimes, ShardLease, type LeaseStore, type LeaseView, type ShardHolder } from "./lease.ts";
import { shardCount } from "./shard.ts";
import { simulate } from "./simulated-nodes.ts";

/** More seeds: SELVEDGE_SEEDS=10000. */
const seeds = Number(process.env["SELVEDGE_SEEDS"] ?? 40);

it("a shard never has two owners, and loses nothing acknowledged, for seeds of suspensions, crashes and late messages", async () => {
  const counts = { acts: 0, owners: 0, acknowledged: 0 };
  for (let seed = 1; seed <= seeds; seed++) {
    const world = await simulate(seed);
    expect(world.violations.slice(0, 3), `seed ${seed}`).toEqual([]);
    for (const key of ["acts", "owners", "acknowledged"] as const) counts[key] += world.counts[key];
  }
  // Otherwise nothing was tried.
  expect(counts.owners).toBeGreaterThan(seeds * 100);
  expect(counts.acknowledged).toBeGreaterThan(seeds * 500);
}, 600_000);

/** A node that has all shards, in a database that the test changes. */
function startLease(holder: Partial<ShardHolder> = {}, leaseMs = 1000) {
  const taken = Array.from({ length: shardCount }, (_, shard) => ({ shard, term: 1, last: null }));
  const database = {
    owners: new Map() as LeaseView["owners"],
    others: [] as LeaseView["nodes"],
    ended: [] as [id: number, beats: number][],
    nowMs: 0,
  };
  let begun = 0;
  const store: LeaseStore = {
    async begin() {
      begun++;
      return 1;
    },
    beat: async () => ({
      nodes: [{ id: 1, address: "", leaseMs: 1000, beats: 1, isLeaving: false }, ...database.others],
      owners: database.owners,
    }),
    end: async (id, beats) => void database.ended.push([id, beats]),
    async take() {
      database.owners = new Map(taken.map(({ shard, term }) => [shard, { owner: 1, term }]));
      return taken;
    },
    confirm: async () => {},
    release: async () => {},
    leave: async () => {},
    finish: async () => {},
  };
  const nothing = {
    known: () => [],
    inUse: () => new Set<number>(),
    prepare: async () => {},
    adopt: async () => {},
    leave: async () => {},
    kill: async () => {},
  };
  const clock = { now: () => database.nowMs, after: () => () => {} };
  const lease = new ShardLease(store, { ...nothing, ...holder }, clock, () => {}, leaseTimes(leaseMs));
  return { lease, database, begun: () => begun };
}

it("a node gives up its shards if the database does not know them any more, as after a failover", async () => {
  let killed = 0;
  const { lease, database } = startLease({
    async kill() {
      killed++;
    },
  });
  await lease.renew();
  await expect.poll(() => lease.shards.length).toBe(shardCount);
  await lease.renew();
  expect([lease.shards.length, killed]).toEqual([shardCount, 0]);
  database.owners = new Map([...database.owners, [5, { owner: 2, term: 1 }]]);
  await lease.renew();
  expect([lease.shards.length, killed]).toEqual([0, 1]);
});

it("a node ends the lease of another at the first look after its time, and not before", async () => {
  let looks = 0;
  const holder = { prepare: async () => void looks++ }; // it comes after the end of others' leases
  const { lease, database } = startLease(holder, 60_000);
  const lookAt = async (nowMs: number, beats: number): Promise<typeof database.ended> => {
    database.nowMs = nowMs;
    database.others = [{ id: 2, address: "", leaseMs: 5000, beats, isLeaving: false }];
    const before = looks;
    await lease.renew();
    await expect.poll(() => looks).toBe(before + 1);
    return database.ended;
  };
  for (const nowMs of [0, 500, 1000]) expect(await lookAt(nowMs, 1)).toEqual([]);
  for (const nowMs of [1500, 3000, 6500]) expect(await lookAt(nowMs, 2)).toEqual([]);
  expect(await lookAt(6501, 2)).toEqual([[2, 2]]);
});

it("a node may write what belongs to a shard until its objects have ended", async () => {
  const namespace = "0".repeat(32);
  const rights: unknown[] = [];
  const { lease } = startLease({
    async leave() {
      rights.push(lease.rightTo(namespace), lease.owns(namespace));
    },
  });
  expect(lease.rightTo(namespace)).toBe(undefined);
  await lease.renew();
  await expect.poll(() => lease.rightTo(namespace)).toEqual({ lease: 1, shard: 0, term: 1 });
  await lease.giveBack();
  expect(rights).toEqual([{ lease: 1, shard: 0, term: 1 }, false]);
  expect(lease.rightTo(namespace)).toBe(undefined);
});

it("a node whose processes could not be ended at once ends them again, and then begins a new lease", async () => {
  let kills = 0;
  const { lease, database, begun } = startLease({
    async kill() {
      if (++kills < 3) throw new Error("EIO");
    },
  });
  await lease.renew();
  await expect.poll(() => lease.shards.length).toBe(shardCount);
  database.owners = new Map();
  await lease.renew();
  expect([lease.current, kills, begun()]).toEqual([undefined, 1, 1]);
  await lease.renew();
  expect([lease.current, kills, begun()]).toEqual([undefined, 2, 1]);
  await lease.renew();
  expect([lease.current, kills, begun()]).toEqual([undefined, 3, 1]);
  await lease.renew();
  expect([lease.current, kills, begun()]).toEqual([1, 3, 2]);
});
