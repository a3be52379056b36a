import { expect, it } from "vitest";
import { leaseTimes, ShardLease, type LeaseStore, type LeaseView } from "./lease.ts";
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

it("a node gives up its shards if the database does not know them any more, as after a failover", async () => {
  const taken = Array.from({ length: shardCount }, (_, shard) => ({ shard, term: 1, last: null }));
  let owners: LeaseView["owners"] = new Map();
  const store: LeaseStore = {
    begin: async () => 1,
    beat: async () => ({
      nodes: [{ id: 1, address: "", leaseMs: 1000, beats: 1, isLeaving: false }],
      owners,
    }),
    end: async () => {},
    async take() {
      owners = new Map(taken.map(({ shard, term }) => [shard, { owner: 1, term }]));
      return taken;
    },
    confirm: async () => {},
    release: async () => {},
    leave: async () => {},
    finish: async () => {},
  };
  let killed = 0;
  const holder = {
    known: () => [],
    inUse: () => new Set<number>(),
    prepare: async () => {},
    adopt: async () => {},
    leave: async () => {},
    async kill() {
      killed++;
    },
  };
  const clock = { now: () => 0, after: () => () => {} };
  const lease = new ShardLease(store, holder, clock, () => {}, leaseTimes(1000));
  await lease.look();
  await expect.poll(() => lease.shards.length).toBe(shardCount);
  await lease.look();
  expect([lease.shards.length, killed]).toEqual([shardCount, 0]);
  owners = new Map([...owners, [5, { owner: 2, term: 1 }]]);
  await lease.look();
  expect([lease.shards.length, killed]).toEqual([0, 1]);
});
