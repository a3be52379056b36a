import { expect, it } from "vitest";
import { addHistogram, addRun, quantileMs, type CpuHistogram } from "./cpu-histogram.ts";

it("tells the CPU time that half and almost all of the runs do not exceed", () => {
  const histogram: CpuHistogram = [];
  for (let run = 1; run <= 98; run++) addRun(histogram, 15);
  addRun(histogram, 700);
  addRun(histogram, 60_000);
  expect([0.5, 0.99, 1].map((share) => quantileMs(histogram, 100, share))).toEqual([20, 1000, Infinity]);
  // 900 further runs were too short for a sample.
  expect([0.5, 0.99].map((share) => quantileMs(histogram, 1000, share))).toEqual([1, 20]);
  expect(quantileMs([], 0, 0.5)).toBeUndefined();
});

it("adds up", () => {
  const sum: CpuHistogram = [1];
  addHistogram(sum, [1, 0, 3]);
  addHistogram(sum, [2]);
  expect(sum).toEqual([4, 0, 3]);
});
