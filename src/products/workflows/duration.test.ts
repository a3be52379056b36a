import { describe, expect, it } from "vitest";
import { readRetention } from "./api/resource.ts";
import { durationMs, sleepMs } from "./worker/duration.ts";

describe("durations have one syntax everywhere", () => {
  it.each([
    [0, 0],
    [1.5, 1.5],
    ["0 days", 0],
    ["1 second", 1000],
    ["10  seconds", 10_000],
    [" 5 Minutes ", 300_000],
    ["1.5 hours", 5_400_000],
    ["1 week", 604_800_000],
    ["1 month", 2_592_000_000],
  ])("%j is %d ms", (duration, ms) => {
    expect(durationMs(duration, "x")).toBe(ms);
    expect(sleepMs(duration, "x")).toBe(ms);
    const rounded = { successMs: Math.round(ms), errorMs: Math.round(ms) };
    expect(readRetention(duration, "x")).toEqual(rounded);
  });

  it.each(["5minutes", "5", "minutes", "soon", "", "1e3 seconds", "5 fortnights", "1 second 5", Number.NaN])(
    "%j is refused",
    (duration) => {
      const refusal = 'such as "5 minutes"';
      expect(() => durationMs(duration, "x")).toThrow(refusal);
      expect(() => sleepMs(duration, "x")).toThrow(refusal);
      expect(() => readRetention(duration as string, "x")).toThrow(refusal);
    },
  );

  it.each([-1, -0.5, "-1 second", "-5 days"])(
    "%j ends a sleep at once, and is refused elsewhere",
    (duration) => {
      expect(sleepMs(duration, "x")).toBe(0);
      expect(() => durationMs(duration, "x")).toThrow("at least 0");
      expect(() => readRetention(duration, "x")).toThrow("at least 0");
    },
  );
});
