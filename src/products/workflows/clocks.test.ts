import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import { openStorage } from "../../platform/storage/storage.ts";
import { setTime } from "../../platform/timers/clock.ts";
import { EngineHarness } from "./testing.ts";

/** Delays that a pause stops, delays that outlive the engine, and code whose cell dies midway. */
let harness: EngineHarness;
let folder: string | undefined;
/** The time of the engine while it stands. */
let nowMs: number;
const stopClock = (): void => {
  nowMs = Date.now();
  setTime(() => nowMs);
};
afterEach(async () => {
  setTime();
  await harness.close();
  if (folder !== undefined) rmSync(folder, { recursive: true });
  folder = undefined;
});

it.each([
  ["a sleep", `await step.sleep("s", 400);`],
  [
    "a retry's delay",
    `await step.do("a", { retries: { limit: 1, delay: 400, backoff: "constant" } }, async ({ attempt }) => { if (attempt === 1) throw new Error("once"); });`,
  ],
  ["a wait's time", `try { await step.waitForEvent("w", { type: "t", timeout: 400 }); } catch {}`],
])("a pause stops the clock of %s (15)", async (_, code) => {
  stopClock();
  harness = await EngineHarness.start(`${code} return "woken";`, { lingerMs: 0 });
  const { rid } = await harness.create("one");
  const { wakeOn } = await harness.until(rid, ({ status }) => status === "waiting");
  await harness.engine.operations.control(rid, "pause");
  const pausedMs = 10_000;
  nowMs += pausedMs;
  await harness.engine.operations.control(rid, "resume");
  const resumed = await harness.until(rid, ({ status }) => status === "waiting");
  expect(resumed.wakeOn).toBe(wakeOn! + pausedMs);
  nowMs = resumed.wakeOn!;
  expect((await harness.ended(rid)).output).toBe("woken");
});

it("a retry's delay and its count outlive the engine (18)", async () => {
  folder = mkdtempSync(join(tmpdir(), "workflows-retries-"));
  const start = async (): Promise<EngineHarness> =>
    EngineHarness.start(
      `return step.do("a", { retries: { limit: 3, delay: 800, backoff: "constant" } }, async ({ attempt }) => { await visit("a" + attempt); if (attempt < 3) throw new Error("no"); return [attempt, Date.now()]; });`,
      { storage: await openStorage(`sqlite:${join(folder!, "test.db")}`), lingerMs: 20 },
    );
  stopClock();
  harness = await start();
  const { rid } = await harness.create("one");
  const { wakeOn } = await harness.until(rid, ({ status }) => status === "waiting");
  expect(harness.requests).toEqual(["/a1"]);
  await harness.close();
  setTime();
  harness = await start();
  const { output } = await harness.ended(rid);
  expect(harness.requests).toEqual(["/a2", "/a3"]);
  const [attempt, at] = output as [number, number];
  expect(attempt).toBe(3);
  expect(at).toBeGreaterThanOrEqual(wakeOn! + 795);
});

it("a name that is used a thousand times means the same step again after its cell has died (21)", async () => {
  harness = await EngineHarness.start(
    `const value = async ({ step: { count } }) => { await new Promise((r) => setTimeout(r, count % 7)); return count; };
     const loop = []; for (let i = 0; i < 500; i++) loop.push(await step.do("same", value));
     await visit("half");
     const rest = await Promise.all(Array.from({ length: 500 }, () => step.do("same", value)));
     return [...loop, ...rest];`,
  );
  const { rid } = await harness.create("one");
  const killWhen = async (isTime: () => boolean): Promise<void> => {
    await vi.waitFor(() => expect(isTime()).toBe(true), { interval: 1 });
    for (const pid of harness.cells.pids) process.kill(pid, "SIGKILL");
  };
  await killWhen(() => (harness.engine.state.peek(rid)?.status ?? "") === "running");
  await killWhen(() => harness.requests.length > 0);
  const { output } = await harness.ended(rid, 60_000);
  expect(output).toEqual(Array.from({ length: 1000 }, (_, i) => i + 1));
  expect((await harness.journal(rid)).filter(({ kind }) => kind === "done")).toHaveLength(1000);
});
