import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { crashRound, Node, Witness, type Round } from "../workflows/crash.ts";

/**
 * kill -9 in the middle of running workflows, again and again: none may be lost, no step whose result came back may run
 * again, and all must complete. `node test/proofs/workflows-crash.ts --rounds 20 --instances 500`
 */
const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "20" },
    instances: { type: "string", default: "500" },
    kill: { type: "string" },
  },
});
const rounds = Number(values.rounds);
const instances = Number(values.instances);
const folder = mkdtempSync(join(tmpdir(), "workflows-crash-"));
const witness = new Witness();
await witness.listen();
const node = new Node(["--data-dir", folder, "--private-networks", "all"]);
await node.start();
await node.deploy(witness);
const kinds = ["both", "engine", "cells"] as const;
const results: (Round & { what: string; killAfterMs: number })[] = [];
for (let i = 0; i < rounds; i++) {
  const what = (values.kill as (typeof kinds)[number] | undefined) ?? kinds[i % kinds.length]!;
  const killAfterMs = Math.round(100 + Math.random() * 2500);
  const round = await crashRound(node, witness, {
    name: `r${i}`,
    instances,
    killAfterMs,
    what,
    before: i * instances,
  });
  results.push({ ...round, what, killAfterMs });
  const { readyMs, firstStepMs, doneMs, repeated } = round;
  process.stdout.write(
    `round ${i + 1}: ${what} killed after ${killAfterMs} ms; ready ${readyMs.toFixed(0)} ms, first step ${firstStepMs.toFixed(0)} ms, all done ${doneMs.toFixed(0)} ms; ${repeated} steps in flight repeated, 0 lost, 0 run again after their result\n`,
  );
}
await node.stop();
witness.close();
rmSync(folder, { recursive: true, force: true });
const median = (of: keyof Round): string => {
  const sorted = results.map((each) => each[of]).toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)]!.toFixed(0);
};
process.stdout.write(
  `${rounds} rounds of ${instances}: 0 lost, 0 executed again after their acknowledgement; medians: ready ${median("readyMs")} ms, first step ${median("firstStepMs")} ms, all done ${median("doneMs")} ms\n`,
);
