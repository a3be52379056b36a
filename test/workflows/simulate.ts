import { parseArgs } from "node:util";
import { instanceStore, type InstanceStore } from "../../src/products/workflows/store/store.ts";
import { openStorage } from "../../src/platform/storage/storage.ts";
import { addWorkflow } from "../../src/products/workflows/testing.ts";
import { simulate } from "./simulation.ts";
import type { World } from "./simulated-world.ts";

/** Runs seeds on one database, which is emptied in between. A failing seed throws with its trace. */
export async function simulateSeeds(first: number, count: number): Promise<void> {
  const storage = await openStorage("sqlite::memory:");
  await addWorkflow(storage);
  try {
    for (let seed = first; seed < first + count; seed++) {
      try {
        const store: InstanceStore = instanceStore(storage, "simulator");
        await simulate(seed, store);
      } catch (error) {
        const { world, message } = error as Error & { world: World };
        const trace = world?.trace.slice(-200).join("\n") ?? "";
        throw new Error(
          `SEED=${seed}: ${message}\n${trace}\nSEED=${seed}: ${message} (npm run simulate -- --seed ${seed})`,
          { cause: error },
        );
      }
      await storage.direct!((database) =>
        database.exec(
          // A seed that runs alone gets the same numbers.
          "delete from workflow_instances; delete from workflow_journal; delete from workflow_events; update sqlite_sequence set seq = 0 where name = 'workflow_instances'",
        ),
      );
    }
  } finally {
    await storage.close();
  }
}

if (process.argv[1] === import.meta.filename) {
  const { values } = parseArgs({
    options: {
      seeds: { type: "string", default: "10000" },
      first: { type: "string", default: "1" },
      seed: { type: "string" },
    },
  });
  const [first, count] =
    values.seed === undefined ? [Number(values.first), Number(values.seeds)] : [Number(values.seed), 1];
  const start = performance.now();
  try {
    await simulateSeeds(first, count);
    process.stdout.write(
      `${count} seeds, ${((performance.now() - start) / 1000).toFixed(0)} s: every invariant held\n`,
    );
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exitCode = 1;
  }
}
