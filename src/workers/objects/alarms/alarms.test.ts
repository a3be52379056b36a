import { expect, it } from "vitest";
import { retriesMax, retryDelayMs } from "./alarms.ts";

it("an alarm is tried again after 2 s, and after twice the time for each further attempt", () => {
  const delays = Array.from({ length: retriesMax }, (_, i) => retryDelayMs(i + 1, undefined, 0));
  expect(delays).toEqual([2000, 4000, 8000, 16_000, 32_000, 64_000]);
  expect(retryDelayMs(1, undefined, 1)).toBe(2500);
  expect(retryDelayMs(1000, undefined, 0)).toBe(1_024_000);
});
