import { afterEach, expect, it } from "vitest";
import { EngineHarness } from "./testing.ts";

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
