import { Chaos } from "../cores/chaos.ts";
import { startCores } from "../cores/cores.ts";

/**
 * Kills and stops edge processes, main and cells at random, under 200 requests a second, each on a connection of its own, and
 * changes. A request may fail only with the process that held it, and no answer may be stale:
 * `node test/proofs/cores-chaos.ts [seconds] [seed]`.
 */
const seconds = Number(process.argv[2] ?? 120);
const seed = Number(process.argv[3] ?? 1);
const edges = 3;

await using cores = await startCores(edges);
const logBytes = 4000;
const ended = cores.server.exited.then((code) => {
  throw new Error(`The node has ended (${code}): ${cores.server.stderr().slice(-logBytes)}`);
});
const chaos = new Chaos(cores, { seconds, perSecond: 200, seed, everyMsMax: 3000 });
const report = await Promise.race([chaos.run(), ended]);
const { failures, stale, ...figures } = report;
const counts = { failures: failures.length, stale: stale.length };
process.stdout.write(`${JSON.stringify({ seed, ...figures, ...counts }, null, 2)}\n`);
for (const each of [...failures, ...stale].slice(0, 20)) process.stdout.write(`${each}\n`);
process.exitCode = failures.length + stale.length === 0 ? 0 : 1;
