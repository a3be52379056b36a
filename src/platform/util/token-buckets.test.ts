import { fc } from "../../../test/helpers/properties.ts";
import { expect, it } from "vitest";
import { TokenBuckets } from "./token-buckets.ts";

it("allows a burst and then the rate, for each key", () => {
  let now = 0;
  const buckets = new TokenBuckets(100, 100, () => now);
  expect(buckets.waitMs("a", 100)).toBe(0);
  buckets.take("a", 100);
  expect([buckets.waitMs("a", 1), buckets.waitMs("a", 100), buckets.waitMs("a", 500)]).toEqual([
    10, 1000, 1000,
  ]);
  expect(buckets.waitMs("b", 100)).toBe(0);
  buckets.take("a", 100); // tokens of the next second
  expect(buckets.waitMs("a", 100)).toBe(2000);
  buckets.take("a", -150);
  expect(buckets.waitMs("a", 50)).toBe(0);
  now += 10_000;
  expect(buckets.waitMs("a", 100)).toBe(0);
});

it("has no limit at a rate of 0", () => {
  const buckets = new TokenBuckets(0);
  buckets.take("a", 1e9);
  expect(buckets.waitMs("a", 1e9)).toBe(0);
});

it("never allows more than a burst plus the rate for the elapsed time", () => {
  const step = fc.record({
    key: fc.constantFrom("a", "b"),
    count: fc.integer({ min: 1, max: 30 }),
    ms: fc.nat(3000),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let now = 0;
      const buckets = new TokenBuckets(10, 20, () => now);
      const given: { key: string; count: number; at: number }[] = [];
      for (const { key, count, ms } of steps) {
        now += ms;
        if (count > 20 || buckets.waitMs(key, count) > 0) continue;
        buckets.take(key, count);
        given.push({ key, count, at: now });
      }
      for (const first of given) {
        const after = given.filter(({ key, at }) => key === first.key && at >= first.at);
        for (const { at: end } of after) {
          const sum = after.filter(({ at }) => at <= end).reduce((total, { count }) => total + count, 0);
          expect(sum).toBeLessThanOrEqual(20 + ((end - first.at) / 1000) * 10 + 1e-6);
        }
      }
    }),
  );
});
