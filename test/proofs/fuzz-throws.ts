/** Thrown values of every kind from every kind of handler: how many random ones for each, and the seed. Prints a table. */
import { castLastNet } from "../../src/platform/observability/last-net.ts";
import { fuzzThrows } from "../survival/fuzz-throws.ts";

const count = Number(process.argv[2] ?? 50);
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000);
castLastNet({ error: console.error.bind(console) }, () => true);
const { throws, table, failures, uncaught } = await fuzzThrows(count, seed, true);
console.table(table);
console.log(JSON.stringify({ seed, throws, withoutEnd: failures.length, uncaught }, null, 2));
for (const failure of failures.slice(0, 10)) console.log(failure);
process.exit(failures.length === 0 && uncaught === 0 ? 0 : 1);
