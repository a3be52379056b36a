import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { openStorage } from "../storage/storage.ts";
import type { RunTrace } from "../tail/run-trace.ts";
import { EngineHarness } from "./testing.ts";

let harness: EngineHarness;
/** What every commit waits for. */
let gate = Promise.resolve();
/** Whether somebody watches, and how the runs ended that they have seen. */
let isWatched = false;
let seen: string[] = [];

beforeEach(async () => {
  gate = Promise.resolve();
  [isWatched, seen] = [false, []];
  const storage = await openStorage("sqlite::memory:");
  const direct = storage.direct!;
  Object.defineProperty(storage, "direct", {
    value: async (work: never) => {
      await gate;
      return direct(work);
    },
  });
  const run = `await visit(event.instanceId);
    if (event.payload.sleeps) await step.sleep("s", "2 seconds");
    return step.do("a", async () => event.payload.value);`;
  const trace = (): RunTrace | undefined =>
    isWatched ? ({ end: (outcome: string) => seen.push(outcome) } as unknown as RunTrace) : undefined;
  harness = await EngineHarness.start(run, { storage, trace, isFaultExpected: true });
});
afterEach(async () => harness.close());

/** No commit is durable until the function that it gives is called. */
function holdDatabase(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  gate = promise;
  return resolve;
}

/** Resolves when as many segments stand by, and none runs. */
const stands = async (count: number): Promise<void> =>
  vi.waitFor(
    () => expect([harness.cells.runningCount, harness.cells.standbyCount]).toEqual([0, count]),
    10_000,
  );

async function runs(id: string, value: number): Promise<void> {
  const { rid } = await harness.create(id, { value });
  expect(await harness.ended(rid)).toEqual({ status: "complete", output: value, error: undefined });
}

it("a segment is where it will run before its instance is durable, and begins only then", async () => {
  const letGo = holdDatabase();
  const created = harness.create("one", { value: 7 });
  await vi.waitFor(() => expect(harness.cells.pids).toHaveLength(1), { timeout: 10_000 });
  await stands(1);
  await new Promise((passed) => setTimeout(passed, 200)); // more than its code would take
  expect(harness.requests).toEqual([]);
  letGo();
  const { rid } = await created;
  expect(await harness.ended(rid)).toEqual({ status: "complete", output: 7, error: undefined });
  expect(harness.requests).toEqual(["/one"]);
});

it("after an end another one stands by, which the next instance begins with", async () => {
  await runs("one", 1);
  await stands(1);
  // Nothing is brought there as long as something stands by.
  const letGo = holdDatabase();
  const created = harness.create("two", { value: 2 });
  await new Promise((passed) => setTimeout(passed, 50));
  await stands(1);
  letGo();
  const { rid } = await created;
  await harness.ended(rid);
  await stands(1);
  expect(harness.requests).toEqual(["/one", "/two"]);
});

it("one whose instance is not made stays for the next", async () => {
  await runs("one", 1);
  await stands(1);
  expect(await harness.create("one", { value: 2 })).toBeNull();
  await stands(1);
  gate = Promise.reject(new Error("database or disk is full"));
  gate.catch(() => {});
  await expect(harness.create("two")).rejects.toThrow("The database does not take writes");
  gate = Promise.resolve();
  await stands(1);
  await runs("two", 3);
  expect(harness.requests).toEqual(["/one", "/two"]);
});

it("where its cell dies meanwhile the instance begins in another", async () => {
  await runs("one", 1);
  await stands(1);
  const letGo = holdDatabase();
  const created = harness.create("two", { value: 2 });
  const [pid] = harness.cells.pids;
  process.kill(pid!, "SIGKILL");
  await vi.waitFor(() => expect(harness.cells.pids).not.toContain(pid), { timeout: 10_000 });
  letGo();
  const { rid } = await created;
  expect(await harness.ended(rid)).toMatchObject({ status: "complete", output: 2 });
});

// A cell has a second to boot, which a busy machine may not give it.
it("before an instance wakes something stands by again", { retry: 3 }, async () => {
  const { rid } = await harness.create("one", { value: 1, sleeps: true });
  await harness.until(rid, ({ status }) => status === "waiting");
  await stands(1);
  const [pid] = harness.cells.pids;
  process.kill(pid!, "SIGKILL");
  await vi.waitFor(() => expect(harness.cells.pids).not.toContain(pid));
  await stands(1);
  expect((await harness.row(rid)).status).toBe("waiting");
  expect(await harness.ended(rid)).toMatchObject({ status: "complete", output: 1 });
});

it("where somebody has begun to watch meanwhile the instance is seen, and nothing stands by", async () => {
  await runs("one", 1);
  await stands(1);
  isWatched = true;
  await runs("two", 2);
  await stands(0);
  expect(seen).toEqual(["ok"]);
  isWatched = false;
  await runs("three", 3);
  await stands(1);
});
