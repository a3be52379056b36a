import { expect, it } from "vitest";
import { pauseBeforeRestart } from "./restart-pause.ts";

const isLong = 8; // 25.6 s
async function paused(attempt: number, is: Parameters<typeof pauseBeforeRestart>[1]): Promise<number> {
  const startMs = performance.now();
  await pauseBeforeRestart(attempt, is);
  return performance.now() - startMs;
}

it("ends when no other process serves, also if the last one ends meanwhile", async () => {
  let isOtherThere = true;
  setTimeout(() => (isOtherThere = false), 1300);
  const [alone, last] = await Promise.all([
    paused(isLong, { wasReady: true, isOtherThere: () => false }),
    paused(isLong, { wasReady: true, isOtherThere: () => isOtherThere }),
  ]);
  expect([alone >= 990, last >= 1290]).toEqual([true, true]);
  expect(Math.max(alone, last)).toBeLessThan(10_000);
});

it("is whole while another process serves, and for a process that never became ready", async () => {
  const attempt = 4; // 1.6 s
  const pauses = await Promise.all([
    paused(attempt, { wasReady: true, isOtherThere: () => true }),
    paused(attempt, { wasReady: false, isOtherThere: () => false }),
  ]);
  for (const ms of pauses) expect(ms).toBeGreaterThanOrEqual(1590);
});

it("grows again for a process that ends soon after each of many starts", async () => {
  const ms = await paused(21, { wasReady: true, isOtherThere: () => false });
  expect(ms).toBeGreaterThanOrEqual(1990);
  expect(ms).toBeLessThan(10_000);
});
