/**
 * Hostile bytes to every listener of a platform: `node test/proofs/fuzz-listeners.ts [--count 100000] [--seed N]`. Prints a table.
 * No exit, nothing that reaches the top, no answer of status 500, every listener serves after each round, memory stays bounded.
 */
import { parseArgs } from "node:util";
import { fuzzListeners } from "../survival/fuzz-listeners.ts";
import { startTarget } from "../survival/target.ts";

const grewMebibytesMax = 256;
const { values } = parseArgs({ options: { count: { type: "string" }, seed: { type: "string" } } });
const count = Number(values.count ?? 100_000);
const seed = Number(values.seed ?? Date.now() % 10_000);
const target = await startTarget();
const { table, failures, ...figures } = await fuzzListeners(target, count, seed, 10);
const rows = Object.entries(table).map(([name, row]) => [
  name,
  { ...row, kibibytes: Math.round(row.kibibytes) },
]);
console.table(Object.fromEntries(rows));
console.log(JSON.stringify({ seed, ...figures, failures: failures.length }, null, 2));
for (const failure of failures.slice(0, 20)) console.log(failure);
await target.stop();
const isHeld =
  failures.length === 0 &&
  figures.uncaught === 0 &&
  figures.socketsLeft === 0 &&
  figures.grewMebibytes < grewMebibytesMax;
process.exit(isHeld ? 0 : 1);
