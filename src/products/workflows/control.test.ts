import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { openStorage } from "../../platform/storage/storage.ts";
import { setTime } from "../../platform/timers/clock.ts";
import { EngineHarness } from "./testing.ts";

/** Operations on instances that run in real cells. The numbers are those of the acceptance cases. */
let harness: EngineHarness;
const folders: string[] = [];
afterEach(async () => {
  setTime();
  await harness.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

const hasBegun = (path: string) => async (): Promise<void> => {
  while (!harness.requests.includes(path)) await new Promise((resolve) => setTimeout(resolve, 2));
};
const event = (rid: number, type: string, payload: unknown): Promise<void> =>
  harness.engine.operations.sendEvent(rid, type, `j${JSON.stringify(payload)}`);

describe("sleeps (8)", () => {
  it("a past or zero delay ends at once, and a replay keeps the first computed time", async () => {
    harness = await EngineHarness.start(
      `await step.sleepUntil("past", new Date(0)); await step.sleep("none", 0); await step.sleep("less", -5);
       const begin = await step.do("begin", async () => Date.now());
       await step.sleepUntil("computed", Date.now() + 300);
       await step.sleep("again", 200);
       return (await step.do("end", async () => Date.now())) - begin;`,
      { lingerMs: 0 },
    );
    const { rid } = await harness.create("one");
    const { output } = await harness.ended(rid);
    expect(output).toBeGreaterThanOrEqual(495);
    // A replay that computed the time again would have changed the row.
    const sleeps = (await harness.journal(rid)).filter(({ key }) => key === "sleep:computed-1");
    expect(sleeps).toHaveLength(1);
  });
});

describe("sleeps across a restart of the engine (8)", () => {
  it.each([
    ["goes on sleeping", 0],
    ["wakes an overdue instance", 5000],
  ])("%s", async (_, overdueMs) => {
    const folder = mkdtempSync(join(tmpdir(), "workflows-sleeps-"));
    folders.push(folder);
    const start = async (): Promise<EngineHarness> =>
      EngineHarness.start(`await step.sleep("s", 400); return step.do("woken", async () => "awake");`, {
        storage: await openStorage(`sqlite:${join(folder, "test.db")}`),
        lingerMs: 20,
      });
    let nowMs = Date.now();
    setTime(() => nowMs);
    harness = await start();
    const { rid } = await harness.create("one");
    const { wakeOn } = await harness.until(rid, ({ status }) => status === "waiting");
    await harness.close();
    if (overdueMs > 0) nowMs = wakeOn! + overdueMs;
    harness = await start();
    if (overdueMs === 0) expect(await harness.row(rid)).toMatchObject({ status: "waiting", wakeOn }); // the clock stands
    nowMs = wakeOn! + overdueMs;
    expect(await harness.ended(rid)).toMatchObject({ status: "complete", output: "awake" });
  });
});

describe("events (10, 11, 12)", () => {
  it("that arrive before their wait are kept in order, one for each wait", async () => {
    harness = await EngineHarness.start(
      `await step.sleep("first", 150);
       const [a, b] = await Promise.all([step.waitForEvent("a", { event: "t" }), step.waitForEvent("b", { type: "t" })]);
       let third; try { await step.waitForEvent("c", { type: "t", timeout: 50 }); } catch (error) { third = [error.name, error.message]; }
       return [a.payload, b.payload, a.type, a.timestamp instanceof Date, third];`,
      { lingerMs: 0 },
    );
    const { rid } = await harness.create("one");
    await event(rid, "t", "A");
    await event(rid, "t", "B");
    expect((await harness.ended(rid)).output).toEqual([
      "A",
      "B",
      "t",
      true,
      ["WorkflowTimeoutError", "Execution timed out after 50ms"],
    ]);
  });

  it("that arrive after a wait has timed out go to the next wait", async () => {
    harness = await EngineHarness.start(
      `try { await step.waitForEvent("first", { type: "t", timeout: 30 }); } catch {}
       await visit("timed-out");
       return (await step.waitForEvent("second", { type: "t" })).payload;`,
    );
    const { rid } = await harness.create("one");
    await hasBegun("/timed-out")();
    await event(rid, "t", "late");
    expect((await harness.ended(rid)).output).toBe("late");
  });

  it("wake an instance that is in no cell", async () => {
    harness = await EngineHarness.start(
      `const { payload } = await step.waitForEvent("a", { type: "t" }); return payload;`,
      { lingerMs: 0 },
    );
    const { rid } = await harness.create("one");
    await harness.until(rid, ({ status }) => status === "waiting");
    expect(harness.engine.state.invocations.size).toBe(0);
    await event(rid, "other", 1);
    await event(rid, "t", 2);
    expect((await harness.ended(rid)).output).toBe(2);
  });

  it("are refused once the instance has ended (13)", async () => {
    harness = await EngineHarness.start("return 1;");
    const { rid } = await harness.create("one");
    await harness.ended(rid);
    await expect(event(rid, "t", 1)).rejects.toMatchObject({ reason: "inFiniteState" });
    for (const action of ["pause", "resume", "terminate"] as const)
      await expect(harness.engine.operations.control(rid, action)).rejects.toThrow(/cannot/);
  });
});

describe("pause (14, 15)", () => {
  it("lets the running step finish and starts no other", async () => {
    harness = await EngineHarness.start(
      `const a = await step.do("a", async () => { await visit("a"); return 1; });
       return a + await step.do("b", async () => { await visit("b"); return 2; });`,
    );
    const endStep = harness.hold("/a");
    const { rid } = await harness.create("one");
    await hasBegun("/a")();
    expect((await harness.engine.operations.control(rid, "pause")).status).toBe("waitingForPause");
    endStep();
    await harness.until(rid, ({ status }) => status === "paused");
    expect((await harness.journal(rid)).some(({ kind, key }) => kind === "done" && key === "do:a-1")).toBe(
      true,
    );
    expect(harness.requests).toEqual(["/a"]);
    await harness.engine.operations.control(rid, "resume");
    expect((await harness.ended(rid)).output).toBe(3);
    expect(harness.requests).toEqual(["/a", "/b"]);
  });

  it("is cancelled by a resume that arrives before the step has ended", async () => {
    harness = await EngineHarness.start(
      `await step.do("a", async () => visit("a"));
       return await step.do("b", async () => 2);`,
    );
    const endStep = harness.hold("/a");
    const { rid } = await harness.create("one");
    await hasBegun("/a")();
    await harness.engine.operations.control(rid, "pause");
    expect((await harness.engine.operations.control(rid, "resume")).status).toBe("running");
    endStep();
    expect((await harness.ended(rid)).output).toBe(2);
    expect(harness.requests).toEqual(["/a"]);
  });
});

describe("terminate and restart (16, 17)", () => {
  it("drops a late result of a terminated instance", async () => {
    harness = await EngineHarness.start(
      `await step.do("a", async () => { await visit("a"); return 1; }); await visit("after");`,
    );
    const endStep = harness.hold("/a");
    const { rid } = await harness.create("one");
    await hasBegun("/a")();
    expect((await harness.engine.operations.control(rid, "terminate")).status).toBe("terminated");
    endStep();
    // The same step of an instance that begins later ends later.
    await harness.ended((await harness.create("two")).rid);
    expect((await harness.journal(rid)).filter(({ kind }) => kind === "done")).toEqual([]);
    expect(harness.requests).toEqual(["/a", "/a", "/after"]);
    expect((await harness.row(rid)).status).toBe("terminated");
  });

  it("restarts with the same id and parameters, and without the events", async () => {
    harness = await EngineHarness.start(
      `const n = await step.do("a", async () => visit("a"));
       try { await step.waitForEvent("w", { type: "t", timeout: 200 }); } catch { return [event.instanceId, event.payload.p, n]; }`,
    );
    const { rid } = await harness.create("one", { p: 7 });
    await event(rid, "unused", 1);
    await hasBegun("/a")();
    await harness.engine.operations.restart(rid);
    expect((await harness.ended(rid)).output).toEqual(["one", 7, 2]);
    expect(harness.requests).toEqual(["/a", "/a"]);
  });

  it("restarts from a step, and keeps the results of earlier steps", async () => {
    harness = await EngineHarness.start(
      `const out = []; for (let i = 0; i < 5; i++) out.push(await step.do("p", async () => visit("p" + i))); return out;`,
    );
    const { rid } = await harness.create("one");
    expect((await harness.ended(rid)).output).toEqual([1, 2, 3, 4, 5]);
    await expect(
      harness.engine.operations.restart(rid, { name: "zz", count: 1, kind: "do" }),
    ).rejects.toMatchObject({ reason: "cannotRestart", message: 'Step "zz" not found in execution history' });
    expect((await harness.row(rid)).status).toBe("complete");
    await harness.engine.operations.restart(rid, { name: "p", count: 3, kind: "do" });
    expect((await harness.ended(rid)).output).toEqual([1, 2, 6, 7, 8]);
  });
});

describe("slots (24)", () => {
  it("never run more than the limit at once; sleeping instances hold no slot; all complete", async () => {
    harness = await EngineHarness.start(
      `await step.do("a", async () => { await visit("a"); await new Promise((r) => setTimeout(r, 20)); });
       await step.sleep("s", 100);
       await step.do("b", async () => { await new Promise((r) => setTimeout(r, 20)); });`,
      { concurrency: 5, lingerMs: 0 },
    );
    let most = 0;
    const watch = setInterval(() => (most = Math.max(most, harness.engine.state.invocations.size)), 1);
    const rids: number[] = [];
    for (let i = 0; i < 40; i++) rids.push((await harness.create(`i${i}`)).rid);
    for (const rid of rids) expect((await harness.ended(rid)).status).toBe("complete");
    clearInterval(watch);
    expect(most).toBeGreaterThan(2);
    expect(most).toBeLessThanOrEqual(5);
  });
});

describe("code that kills its cell (25)", () => {
  it.each([
    ["for ever", "for (;;) {}"],
    ["in memory", "const a = []; for (;;) a.push(new Array(100_000).fill(Math.random()));"],
  ])(
    "%s is given up after three times; its neighbours complete",
    async (_what, code) => {
      harness = await EngineHarness.start(
        `if (event.payload.bad) await step.do("bad", async () => { await visit("bad"); ${code} });
       await step.do("slow", async () => { await new Promise((r) => setTimeout(r, 300)); });
       return "good";`,
        { cells: { stallCpuMs: 300 }, cpuMs: 1000 },
      );
      const good = await Promise.all(Array.from({ length: 10 }, async (_, i) => harness.create(`g${i}`)));
      const bad = await harness.create("bad", { bad: true });
      expect(await harness.ended(bad.rid, 110_000)).toMatchObject({
        status: "errored",
        error: { name: "WorkflowInternalError" },
      });
      for (const { rid } of good) expect(await harness.ended(rid)).toMatchObject({ output: "good" });
      expect(harness.requests.filter((path) => path === "/bad").length).toBeLessThanOrEqual(4);
    },
    120_000,
  );
});

it("ended instances are removed after their retention, which frees their id (25)", async () => {
  harness = await EngineHarness.start("await step.do('a', async () => 1);");
  const [row] = await harness.engine.operations.create(0, [
    {
      accountId: "a",
      workflowRid: 1,
      versionRid: 1,
      id: "short",
      params: "j{}",
      trigger: "api",
      creatorTrace: null,
      successRetentionMs: 300,
      errorRetentionMs: 300,
    },
  ]);
  while ((await harness.row(row!.rid)) !== undefined) await new Promise((resolve) => setTimeout(resolve, 50));
  expect(await harness.storage.read.selectFrom("workflow_journal").selectAll().execute()).toEqual([]);
  expect(await harness.create("short")).not.toBeNull();
});

it("while the database fails, new work is refused and running instances wait until it recovers", async () => {
  const storage = await openStorage("sqlite::memory:");
  let isFull = false;
  let refusals = 0;
  const direct = storage.direct!;
  Object.defineProperty(storage, "direct", {
    value: async (work: never) => {
      if (!isFull) return direct(work);
      refusals++;
      throw new Error("database or disk is full");
    },
  });
  harness = await EngineHarness.start(
    `const a = await step.do("a", async () => { await visit("a"); await visit("made"); return 1; });
     await visit("acknowledged");
     return a;`,
    { storage, isFaultExpected: true },
  );
  const endVisit = harness.hold("/a");
  const { rid } = await harness.create("one");
  await hasBegun("/a")();
  isFull = true;
  await expect(harness.create("two")).rejects.toThrow("The database accepts no writes");
  endVisit();
  await hasBegun("/made")();
  const before = refusals;
  // The engine tries again to write.
  await vi.waitFor(() => expect(refusals).toBeGreaterThan(before + 1));
  await expect(event(rid, "t", 1)).rejects.toThrow("The database accepts no writes");
  expect(harness.requests).toEqual(["/a", "/made"]); // nothing is acknowledged while the database fails
  isFull = false;
  expect(await harness.ended(rid)).toMatchObject({ status: "complete", output: 1 });
  expect(harness.requests).toEqual(["/a", "/made", "/acknowledged"]);
});
