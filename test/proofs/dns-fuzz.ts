/** Mutated packets for the answering side: how many (a million), the seed. Prints what came of them; fails on a fault. */
import { Mutations } from "../name-server/mutations.ts";
import { Random } from "../name-server/random.ts";

const total = Number(process.argv[2] ?? 1_000_000);
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000);
const step = total / 10;
const mutations = new Mutations(new Random(seed));
const heapMebibytes: number[] = [];
const slowestMs: number[] = [];
for (let done = 0; done < total; done += step) {
  let slowest = 0;
  for (let part = 0; part < 100; part++) {
    const started = performance.now();
    mutations.run(step / 100);
    slowest = Math.max(slowest, performance.now() - started);
  }
  globalThis.gc?.();
  heapMebibytes.push(Math.round(process.memoryUsage().heapUsed / 1024 / 1024));
  slowestMs.push(Math.round(slowest));
}
console.log(JSON.stringify({ seed, ...mutations.outcome, heapMebibytes, slowestMs }, null, 2));
process.exit(mutations.outcome.faults.length === 0 ? 0 : 1);
