import { expect, test } from "vitest";
import { amongCalls, countCall, endRuns, noteWork } from "./concurrency.ts";

/* The module's state is shared by all runs of a script's isolate. */

test("all runs of a script that calls itself end", async () => {
  let [runs, inFlight] = [0, 0];
  const call = async (depth: number): Promise<void> => {
    inFlight++;
    await Promise.resolve();
    if (depth > 0) await run(depth - 1);
    inFlight--;
  };
  const run = async (depth: number): Promise<void> => {
    const name = `run ${++runs}`;
    await Promise.all(Array.from({ length: 3 }, async () => amongCalls(name, async () => call(depth))));
  };
  await Promise.all(Array.from({ length: 100 }, async () => run(4)));
  expect(runs).toBe(100 * (1 + 3 + 9 + 27 + 81));
  expect(inFlight).toBe(0);
});

test("calls of a run whose visitor left count while its work goes on", async () => {
  const never = new Promise<void>(() => {});
  const work = Promise.withResolvers<void>();
  const begin = (run: string): void => {
    for (let k = 0; k < 32; k++) void amongCalls(run, async () => never);
  };
  for (let i = 0; i < 8; i++) begin(`left ${i}`);
  noteWork("left 0", work.promise);
  endRuns(["left 0"]);
  void countCall("other", () => never);
  await expect(countCall("other", () => never)).rejects.toThrow("too many requests");
  work.resolve();
  await work.promise;
  await Promise.resolve();
  void countCall("other", () => never);
  endRuns(["other", ...Array.from({ length: 8 }, (_, i) => `left ${i}`)]);
  for (let i = 0; i < 8; i++) begin(`next ${i}`);
  void countCall("other", () => never);
  await expect(countCall("other", () => never)).rejects.toThrow("too many requests");
  endRuns(["other", ...Array.from({ length: 8 }, (_, i) => `next ${i}`)]);
});

test("one run may have 32 concurrent calls, many runs together 256 and one each", async () => {
  const never = new Promise<void>(() => {});
  const counts = new Map<string, number>();
  for (let i = 0; i < 20; i++) {
    const name = `lasting ${i}`;
    for (let k = 0; k < 40; k++)
      void amongCalls(name, async () => {
        counts.set(name, (counts.get(name) ?? 0) + 1);
        return never;
      });
  }
  expect(Math.max(...counts.values())).toBe(32);
  expect(Math.min(...counts.values())).toBe(1);
  expect([...counts.values()].reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(256 + 20);
  // The first call is counted, and the next one is refused.
  void countCall("another", () => never);
  await expect(countCall("another", () => never)).rejects.toThrow("too many requests");
});
