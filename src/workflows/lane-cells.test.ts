import { afterEach, expect, it, vi } from "vitest";
import { EngineHarness } from "./testing.ts";

/** Keeps as many megabytes as it is told to. */
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

it("ends a cell that has grown and in which nothing runs; what comes then gets another", async () => {
  harness = await EngineHarness.start("", { code: growing, idle: { ms: 500, growthBytesMax: 64 * 2 ** 20 } });
  const run = async (id: string, megabytes: number): Promise<unknown> =>
    (await harness.ended((await harness.create(id, { megabytes })).rid)).output;
  expect(await run("small", 1)).toBe(1);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  expect(harness.cells.pids).toHaveLength(1);
  expect(await run("large", 80)).toBe(2);
  await vi.waitFor(() => expect(harness.cells.pids).toEqual([]), { timeout: 10_000 });
  expect(await run("next", 1)).toBe(1);
});

it("what only stood by in a grown cell keeps it no longer", async () => {
  harness = await EngineHarness.start("", { code: growing, idle: { ms: 500, growthBytesMax: 64 * 2 ** 20 } });
  const { rid } = await harness.create("large", { megabytes: 80 });
  await harness.ended(rid);
  const [pid] = harness.cells.pids;
  const code = { accountId: "a", scriptName: "s", scriptVersion: "v", className: "Main" };
  let segment = 1;
  await vi.waitFor(
    () => {
      harness.cells.signal(segment, "abort");
      harness.cells.standBy(++segment, code);
      expect(harness.cells.pids).not.toContain(pid);
    },
    { timeout: 10_000, interval: 100 },
  );
});
