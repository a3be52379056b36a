import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { canMakeDisks, fillDisk } from "../helpers/disk.ts";
import { startPostgres } from "../helpers/postgres.ts";
import { Node, pause, Witness } from "./crash.ts";

/**
 * The database accepts no writes for a while: new work is refused with a reason, running work waits,
 * acknowledged work is neither lost nor repeated, and everything continues after the fault.
 */
const instances = 20;
let witness: Witness;
let folder: string;
let ends: (() => Promise<void>)[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "workflows-faults-"));
  witness = new Witness();
  await witness.listen();
  ends = [];
});
afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  witness.close();
  rmSync(folder, { recursive: true, force: true });
});

async function start(node: Node): Promise<void> {
  await node.start();
  ends.push(() => node.stop());
  await node.deploy(witness);
}

/** Resolves once no step was acknowledged for 1.5 seconds: nothing else shows that all of them wait. */
async function stands(): Promise<number> {
  for (;;) {
    const count = witness.acknowledgedCount;
    await pause(1500);
    if (witness.acknowledgedCount === count) return count;
  }
}

it("PostgreSQL is away, for longer than leases last", async () => {
  const postgres = await startPostgres();
  ends.push(() => postgres.stop());
  const url = await postgres.createDatabase();
  const node = new Node(["--data-dir", folder, "--private-networks", "all", "--database-url", url]);
  await start(node);
  await node.create("before", instances);
  while (witness.acknowledgedCount < instances) await pause(20);
  await postgres.crash();
  await expect(node.create("refused", 1)).rejects.toThrow("10503");
  const acknowledged = await stands();
  await pause(11_000); // leases last ten seconds
  await expect(node.create("refused", 1)).rejects.toThrow("10503");
  expect(witness.acknowledgedCount).toBe(acknowledged);
  await postgres.start();
  await node.completed(instances, 60_000);
  await node.create("after", 1);
  await node.completed(instances + 1, 60_000);
  expect(witness.violations).toEqual([]);
  expect(witness.begunCount).toBe((instances + 1) * 10);
});

it.skipIf(!canMakeDisks)(
  "the disk is full",
  async () => {
    // A separate disk in memory, which this process reaches through the process that has mounted it.
    const disk = ["bwrap", "--dev-bind", "/", "/", "--size", String(48 * 1024 * 1024), "--tmpfs", folder];
    const node = new Node(
      ["--data-dir", folder, "--private-networks", "all"],
      [...disk, "--die-with-parent"],
    );
    await start(node);
    await node.create("before", instances);
    while (witness.acknowledgedCount < instances) await pause(20);
    const filler = join(`/proc/${node.pid}/root`, folder, "filler");
    fillDisk(filler, 4096);
    // First uses up the space that the database has allocated already.
    let created = 0;
    await expect(
      (async () => {
        for (; created < 10_000; created++) await node.create(`full${created}`, 1);
      })(),
    ).rejects.toThrow("10507");
    const acknowledged = await stands();
    expect(acknowledged).toBeLessThan((instances + created) * 10);
    await expect(node.create("refused", 1)).rejects.toThrow("10507");
    expect(Object.keys(await node.counts()).length).toBeGreaterThan(0); // reads still work
    rmSync(filler);
    await node.completed(instances + created, 60_000);
    await node.create("after", 1);
    await node.completed(instances + created + 1, 60_000);
    expect(witness.violations).toEqual([]);
    expect(witness.begunCount).toBe((instances + created + 1) * 10);
  },
  180_000,
);
