import { expect, it } from "vitest";
import { Analytics } from "./analytics.ts";
import { boundsMs, Histogram } from "./histogram.ts";

it("counts each time in the bucket that ends at or above it", () => {
  const histogram = new Histogram();
  for (const ms of [0.2, 1, 1.1, 10_000, 60_000]) histogram.add(ms);
  expect(histogram.counts[0]).toBe(2);
  expect(histogram.counts[1]).toBe(1);
  expect(histogram.counts[boundsMs.length - 1]).toBe(1);
  expect(histogram.counts[boundsMs.length]).toBe(1);
});

it("estimates quantiles within the width of a bucket", () => {
  const histogram = new Histogram();
  for (let ms = 1; ms <= 1000; ms++) histogram.add(ms);
  expect(histogram.quantile(0.5)).toBeCloseTo(500, -1);
  expect(histogram.quantile(0.99)).toBeCloseTo(990, -1);
  expect(new Histogram().quantile(0.5)).toBeUndefined();
});

it("the recent tally drops results after 48 hours, and the lifetime tally keeps them", () => {
  const zone = new Analytics().zone("z");
  zone.add("smart", 10);
  zone.add("direct", 20);
  zone.hedged();
  expect(zone.recent()).toMatchObject({ smart: { count: 1 }, direct: { count: 1 }, hedges: 1 });
  expect(zone.recent(Date.now() + 49 * 3_600_000)).toMatchObject({ smart: { count: 0 }, hedges: 0 });
  expect(zone.lifetime.smart.count).toBe(1);
});
