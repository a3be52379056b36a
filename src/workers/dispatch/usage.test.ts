import { afterEach, expect, it } from "vitest";
import { setTime } from "../../platform/timers/clock.ts";
import { DispatchUsage } from "./usage.ts";

afterEach(() => setTime());
const minuteMs = 60_000;
let now = Date.UTC(2026, 10, 23, 12, 4);

it("adds what came in the last hour, and forgets the rest", () => {
  setTime(() => now);
  const usage = new DispatchUsage();
  const startedAt = now;
  const add = (id: string, lastFault?: string): void =>
    usage.add(id, {
      requests: 1,
      faults: lastFault === undefined ? 0 : 1,
      cpuMs: 2,
      cpuRuns: [0, 1],
      lastFault,
    });
  add("early", "Error: first");
  now += 30 * minuteMs;
  add("early");
  add("late");
  expect(usage.of("early")).toEqual({
    requests: 2,
    faults: 1,
    cpuMs: 4,
    cpuRuns: [0, 2],
    lastFault: { at: startedAt, message: "Error: first" },
  });
  expect(usage.since).toBe(startedAt);
  now += 41 * minuteMs;
  expect(usage.of("early")).toEqual({
    requests: 1,
    faults: 0,
    cpuMs: 2,
    cpuRuns: [0, 1],
    lastFault: undefined,
  });
  expect(usage.since).toBeGreaterThan(startedAt);
  expect([...usage.scriptIds]).toEqual(["early", "late"]);
  usage.forget("early");
  expect(usage.of("early")).toBeUndefined();
  now += 70 * minuteMs;
  expect([...usage.scriptIds]).toEqual([]);
});
