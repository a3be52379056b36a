import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { KeptSpan } from "../../../platform/tracing/spans/span.ts";
import { Tracer } from "../../../platform/tracing/spans/tracer.ts";
import type { StartMessage } from "../worker/messages.ts";
import { InvocationSpan } from "./invocation-span.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date", "performance"] }));
afterEach(() => void vi.useRealTimers());

const code = { accountId: "a", scriptName: "s", scriptVersion: "v", className: "C" };
const start = { workflowName: "w", instanceId: "i" } as StartMessage;

/** The begin and end of a step in milliseconds after the invocation's, whose message came 500 ms after that. */
function stepSince(sinceMs: (begunMs: number) => number): { startMs: number; endMs: number } {
  const ended: KeptSpan[] = [];
  const tracer = new Tracer(
    { add: (span) => ended.push(span), attribute: () => "" },
    { followsParent: true, ratio: 1 },
  );
  const invocation = new InvocationSpan();
  invocation.begin(tracer, code, start);
  const begunMs = Date.now();
  const from = performance.now();
  vi.advanceTimersByTime(500);
  invocation.attempted({ name: "one", attempt: 1, sinceMs: sinceMs(begunMs), hasFailed: false });
  const [step] = ended;
  return { startMs: step!.startMs - from, endMs: step!.endMs - from };
}

it("begins when its attempt began, however late the message about it comes", () => {
  const { startMs, endMs } = stepSince((begunMs) => begunMs + 200);
  // Isolates have whole milliseconds, and a step does not begin after its first request.
  expect(startMs).toBeGreaterThanOrEqual(198);
  expect(startMs).toBeLessThanOrEqual(200);
  expect(endMs).toBe(500);
});

it.each([0, -1e308, 1e308])("is within its invocation, with %d from a hostile isolate", (sinceMs) => {
  const { startMs, endMs } = stepSince(() => sinceMs);
  expect(startMs).toBeGreaterThanOrEqual(0);
  expect(startMs).toBeLessThanOrEqual(endMs);
  expect(endMs).toBe(500);
});
