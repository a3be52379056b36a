import { afterEach, expect, it, vi } from "vitest";
import { EngineHarness } from "../testing.ts";

/** Allocates the given number of megabytes and keeps them. */
const growing = `import { WorkflowEntrypoint } from "cloudflare:workers";
const kept = [];
export class Main extends WorkflowEntrypoint {
  run(event, step) {
    kept.push(new Uint8Array(event.payload.megabytes * 2 ** 20).fill(1));
    return step.do("kept", async () => kept.length);
  }
}
export default {};`;

let harness: EngineHarness;
afterEach(() => harness.close());

it("runs a workflow of steps, which see their environment and their event", async () => {
  harness = await EngineHarness.start(`
    const a = await step.do("a", async ({ attempt }) => ({ attempt, greeting: this.env.GREETING, n: event.payload.n }));
    const b = await step.do("b", async () => visit("b"));
    return { a, b, id: event.instanceId, isDate: event.timestamp instanceof Date };`);
  const { rid } = await harness.create("one", { n: 5 });
  expect(await harness.ended(rid)).toEqual({
    status: "complete",
    output: { a: { attempt: 1, greeting: "hello", n: 5 }, b: 1, id: "one", isDate: true },
    error: undefined,
  });
  expect(harness.requests).toEqual(["/b"]);
});

it("ends an idle cell that has grown; the next instance gets a new one", async () => {
  harness = await EngineHarness.start("", { code: growing, idle: { ms: 500, growthBytesMax: 64 * 2 ** 20 } });
  const run = async (id: string, megabytes: number): Promise<unknown> =>
    (await harness.ended((await harness.create(id, { megabytes })).rid)).output;
  expect(await run("small", 1)).toBe(1);
  await new Promise((resolve) => setTimeout(resolve, 1000)); // twice the idle time, in which the cell would end
  expect(harness.cells.pids).toHaveLength(1);
  expect(await run("large", 80)).toBe(2);
  await vi.waitFor(() => expect(harness.cells.pids).toEqual([]));
  expect(await run("next", 1)).toBe(1);
});

it("a standby invocation does not keep a grown cell alive", async () => {
  harness = await EngineHarness.start("", { code: growing, idle: { ms: 500, growthBytesMax: 64 * 2 ** 20 } });
  const { rid } = await harness.create("large", { megabytes: 80 });
  await harness.ended(rid);
  const [pid] = harness.cells.pids;
  const code = { accountId: "a", scriptName: "s", scriptVersion: "v", className: "Main" };
  let invocation = 1;
  await vi.waitFor(
    () => {
      harness.cells.signal(invocation, "abort");
      harness.cells.standBy(++invocation, code);
      expect(harness.cells.pids).not.toContain(pid);
    },
    { interval: 100 },
  );
});

it("an aborted invocation, whose code still runs, sends no more requests", async () => {
  harness = await EngineHarness.start(`
    await step.do("endless", async () => {
      for (;;) {
        await visit("again").catch(() => {});
        await scheduler.wait(5);
      }
    });`);
  const { rid } = await harness.create("one");
  await vi.waitFor(() => expect(harness.requests.length).toBeGreaterThan(3));
  await harness.engine.operations.control(rid, "terminate");
  const { length } = harness.requests;
  await new Promise((resolve) => setTimeout(resolve, 300)); // time in which it would send dozens
  expect(harness.requests).toHaveLength(length);
});
