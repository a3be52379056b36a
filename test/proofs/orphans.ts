import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { KilledBoot } from "../cells/orphans.ts";

/**
 * Kills a process at many moments of the start of a cell, and counts the kills after which a process of the cell
 * stays. `node test/proofs/orphans.ts --kills 400 --span 100`
 */
const { values } = parseArgs({
  options: { kills: { type: "string", default: "400" }, span: { type: "string", default: "100" } },
});
const kills = Number(values.kills);
const spanMs = Number(values.span);
let orphans = 0;
for (let kill = 0; kill < kills; kill++) {
  const boot = new KilledBoot();
  await boot.begun();
  await delay((kill / kills) * spanMs);
  await boot.kill();
  const left = await boot.left(2000);
  if (left.length > 0) {
    orphans++;
    process.stdout.write(`${left.join("\n")}\n`);
  }
}
process.stdout.write(`${kills} kills within ${spanMs} ms of the start: ${orphans} left processes behind\n`);
if (orphans > 0) process.exitCode = 1;
