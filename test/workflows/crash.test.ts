import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { crashRound, Node, Witness } from "./crash.ts";

/** The short form of test/proofs/workflows-crash.ts. */
const witness = new Witness();
const folder = mkdtempSync(join(tmpdir(), "workflows-crash-"));
const node = new Node(["--data-dir", folder, "--private-networks", "all"]);
const instances = 40;
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

it.each([["both"], ["engine"], ["cells"]] as const)(
  "loses nothing and repeats nothing that was acknowledged when %s are killed",
  async (what) => {
    const before = (await node.counts())["complete"]!;
    const killAfterMs = 1000;
    const round = await crashRound(node, witness, { name: what, instances, killAfterMs, what, before });
    expect(round.repeated).toBeLessThanOrEqual(instances);
  },
  120_000,
);
