import { expect, it, vi } from "vitest";
import { Chaos } from "./chaos.ts";
import { startCores } from "./cores.ts";

it("requests fail only with the process that held them, and no answer is stale", async () => {
  await using cores = await startCores(2);
  const options = { seconds: 10, perSecond: 40, seed: 7, everyMsMax: 1200 };
  const { failures, stale, asked, changes, disturbances } = await new Chaos(cores, options).run();
  expect({ failures, stale }).toEqual({ failures: [], stale: [] });
  expect(asked).toBeGreaterThan(100);
  expect(changes.acknowledged).toBeGreaterThan(0);
  expect(Object.keys(disturbances).length).toBeGreaterThan(1);
  const wait = { timeout: 60_000, interval: 100 };
  await vi.waitFor(
    () => expect([cores.pids("edge").length, cores.pids("main").length]).toEqual([2, 1]),
    wait,
  );
});
