/** Hostile answers of origins and scripts, to visitors on each version of HTTP: how many, and the seed. Prints a table. */
import { fuzzAnswers } from "../survival/fuzz-answers.ts";
import { startTarget } from "../survival/target.ts";

const count = Number(process.argv[2] ?? 2000);
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000);
const target = await startTarget();
const { visits, table, failures, uncaught } = await fuzzAnswers(target, count, seed);
console.table(table);
console.log(
  JSON.stringify({ seed, answers: count, visits, withoutStatus: failures.length, uncaught }, null, 2),
);
for (const failure of failures.slice(0, 10)) console.log(failure);
await target.stop();
process.exit(failures.length === 0 && uncaught === 0 ? 0 : 1);
