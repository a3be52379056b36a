import { expect, it } from "vitest";
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
