import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Node, Witness } from "./crash.ts";

/**
 * Creates while the engine is killed: acknowledged instances exist and complete; batches are created as a
 * whole or not at all.
 */
const witness = new Witness();
const folder = mkdtempSync(join(tmpdir(), "workflows-creates-"));
const node = new Node(["--data-dir", folder, "--private-networks", "all"]);
const path = "/workflows/crash/instances";
const rounds = 3;
beforeAll(async () => {
  await witness.listen();
  await node.start();
  await node.deploy(witness);
});
afterAll(async () => {
  await node.stop();
  witness.close();
  rmSync(folder, { recursive: true, force: true });
});

it("loses no acknowledged instance, creates none twice, and no partial batch (3, 4, 22)", async () => {
  const answered: string[] = [];
  const batches: string[][] = [];
  for (let round = 0; round < rounds; round++) {
    const engine = { isUp: true };
    const createSingly = async (client: number): Promise<void> => {
      for (let i = 0; engine.isUp; i++) {
        const id = `single-${round}-${client}-${i}`;
        await node.call("POST", path, { id }).then(
          () => answered.push(id),
          () => (engine.isUp = false), // the connection closed: the instance may exist or not
        );
      }
    };
    const createBatches = async (): Promise<void> => {
      for (let i = 0; engine.isUp; i++) {
        const ids = Array.from({ length: 100 }, (_, each) => `batch-${round}-${i}-${each}`);
        batches.push(ids);
        const bodies = ids.map((id) => ({ id }));
        await node.call("POST", `${path}/batch`, bodies).then(
          () => answered.push(...ids),
          () => (engine.isUp = false),
        );
      }
    };
    const creating = Promise.all([createSingly(0), createSingly(1), createBatches()]);
    while (answered.length < 120 * (round + 1)) await new Promise((resolve) => setTimeout(resolve, 1));
    await node.kill("engine");
    await creating;
    await node.start();
  }
  const all = new Set<string>();
  for (let page = 1; ; page++) {
    const rows = (await node.call("GET", `${path}?per_page=100&page=${page}`)) as { id: string }[];
    if (rows.length === 0) break;
    for (const { id } of rows) {
      expect(all.has(id)).toBe(false);
      all.add(id);
    }
  }
  expect(answered.filter((id) => !all.has(id))).toEqual([]);
  for (const ids of batches) expect([0, ids.length]).toContain(ids.filter((id) => all.has(id)).length);
  await node.completed(all.size, 120_000);
  expect(witness.violations).toEqual([]);
}, 240_000);
