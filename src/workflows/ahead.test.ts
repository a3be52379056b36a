import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { openStorage } from "../storage/storage.ts";
import { EngineHarness } from "./testing.ts";

let harness: EngineHarness;
/** What every commit waits for. */
let gate = Promise.resolve();

beforeEach(async () => {
  gate = Promise.resolve();
  const storage = await openStorage("sqlite::memory:");
  const direct = storage.direct!;
  Object.defineProperty(storage, "direct", {
    value: async (work: never) => {
      await gate;
      return direct(work);
    },
  });
  const run = `await visit(event.instanceId); return step.do("a", async () => event.payload.value);`;
  harness = await EngineHarness.start(run, { storage, isFaultExpected: true });
});
afterEach(async () => harness.close());

/** No commit is durable until the function that it gives is called. */
function holdDatabase(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  gate = promise;
  return resolve;
}

const isQuiet = async (): Promise<void> =>
  vi.waitFor(() => expect(harness.cells.runningCount).toBe(0), { timeout: 10_000 });

it("a segment is where it will run before its instance is durable, and begins only then", async () => {
  const letGo = holdDatabase();
  const created = harness.create("one", { value: 7 });
  await vi.waitFor(() => expect(harness.cells.pids).toHaveLength(1), { timeout: 10_000 });
  expect(harness.cells.runningCount).toBe(1);
  await new Promise((passed) => setTimeout(passed, 200)); // more than its code would take
  expect(harness.requests).toEqual([]);
  letGo();
  const { rid } = await created;
  expect(await harness.ended(rid)).toEqual({ status: "complete", output: 7, error: undefined });
  expect(harness.requests).toEqual(["/one"]);
  await isQuiet();
});

it("one whose id is taken ends without having begun", async () => {
  const { rid } = await harness.create("one", { value: 1 });
  await harness.ended(rid);
  await isQuiet();
  const letGo = holdDatabase();
  const again = harness.create("one", { value: 2 });
  await vi.waitFor(() => expect(harness.cells.runningCount).toBe(1));
  letGo();
  expect(await again).toBeNull();
  await isQuiet();
  expect(harness.requests).toEqual(["/one"]);
});

it("one that the database refuses ends without having begun", async () => {
  gate = Promise.reject(new Error("database or disk is full"));
  gate.catch(() => {});
  await expect(harness.create("one")).rejects.toThrow("The database does not take writes");
  gate = Promise.resolve();
  await isQuiet();
  expect(harness.requests).toEqual([]);
});

it("one whose cell dies meanwhile begins in another", async () => {
  const { rid: first } = await harness.create("one", { value: 1 });
  await harness.ended(first);
  await isQuiet();
  const letGo = holdDatabase();
  const created = harness.create("two", { value: 2 });
  await vi.waitFor(() => expect(harness.cells.runningCount).toBe(1));
  const [pid] = harness.cells.pids;
  process.kill(pid!, "SIGKILL");
  await vi.waitFor(() => expect(harness.cells.pids).not.toContain(pid), { timeout: 10_000 });
  letGo();
  const { rid } = await created;
  expect(await harness.ended(rid)).toMatchObject({ status: "complete", output: 2 });
});
