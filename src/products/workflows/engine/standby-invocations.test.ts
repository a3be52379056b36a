import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { openStorage } from "../../../platform/storage/storage.ts";
import type { RunTrace } from "../../../workers/tail/run-trace.ts";
import { EngineHarness } from "../testing.ts";

let harness: EngineHarness;
/** Every commit waits for this promise. */
let gate = Promise.resolve();
/** Whether the script has a tail consumer, and the outcomes that it received. */
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

/** Holds back all commits until the returned function is called. */
function holdDatabase(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  gate = promise;
  return resolve;
}

/** Resolves once `count` invocations stand by and none runs. */
const stands = async (count: number): Promise<void> =>
  vi.waitFor(() => expect([harness.cells.runningCount, harness.cells.standbyCount]).toEqual([0, count]));

async function runs(id: string, value: number): Promise<void> {
  const { rid } = await harness.create(id, { value });
  expect(await harness.ended(rid)).toEqual({ status: "complete", output: value, error: undefined });
}

it("a new instance's code loads while its row is written, and starts once the row is durable", async () => {
  const letGo = holdDatabase();
  const created = harness.create("one", { value: 7 });
  await vi.waitFor(() => expect(harness.cells.pids).toHaveLength(1));
  await stands(1);
  await new Promise((passed) => setTimeout(passed, 200)); // longer than the code needs
  expect(harness.requests).toEqual([]);
  letGo();
  const { rid } = await created;
  expect(await harness.ended(rid)).toEqual({ status: "complete", output: 7, error: undefined });
  expect(harness.requests).toEqual(["/one"]);
});

it("after an instance ends, a standby invocation is ready for the next one", async () => {
  await runs("one", 1);
  await stands(1);
  // No standby invocation is added while one exists.
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

it("a standby invocation stays for the next instance when a create fails", async () => {
  await runs("one", 1);
  await stands(1);
  expect(await harness.create("one", { value: 2 })).toBeNull();
  await stands(1);
  gate = Promise.reject(new Error("database or disk is full"));
  gate.catch(() => {});
  await expect(harness.create("two")).rejects.toThrow("The database accepts no writes");
  gate = Promise.resolve();
  await stands(1);
  await runs("two", 3);
  expect(harness.requests).toEqual(["/one", "/two"]);
});

it("when the standby's cell dies, the instance starts in another cell", async () => {
  await runs("one", 1);
  await stands(1);
  const letGo = holdDatabase();
  const created = harness.create("two", { value: 2 });
  const [pid] = harness.cells.pids;
  process.kill(pid!, "SIGKILL");
  await vi.waitFor(() => expect(harness.cells.pids).not.toContain(pid));
  letGo();
  const { rid } = await created;
  expect(await harness.ended(rid)).toMatchObject({ status: "complete", output: 2 });
});

// A cell has one second to boot, which a busy machine may exceed.
it("before an instance wakes, an invocation stands by again", { retry: 3 }, async () => {
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

it("when a tail consumer was added in the meantime, the instance is traced and no invocation stands by", async () => {
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
