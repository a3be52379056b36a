import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it, onTestFinished, vi } from "vitest";
import { CpuLimiter } from "./cpu-limiter.ts";
import { CpuClock } from "../process/cpu-clock.ts";

/** A process that only uses CPU time, with its clock. */
async function spinning(): Promise<{ pid: number; usedMs: () => number; end: () => Promise<void> }> {
  const child = spawn(process.execPath, ["-e", `process.stdout.write("on"); for (;;) {}`]);
  const exited = once(child, "exit");
  await once(child.stdout, "data");
  const clock = new CpuClock(child.pid!);
  const end = async (): Promise<void> => {
    child.kill("SIGKILL");
    await exited;
  };
  onTestFinished(async () => {
    clock.close();
    await end();
  });
  return { pid: child.pid!, usedMs: () => clock.writtenMs(), end };
}

it("stops a process at its limit, resumes it for a higher one, and does nothing after release", async () => {
  const { pid, usedMs } = await spinning();
  const first = usedMs() + 100;
  const limiter = CpuLimiter.on(pid, first)!;
  /** CPU time at which it was stopped. */
  const stand = async (): Promise<number> =>
    vi.waitFor(async () => {
      const before = usedMs();
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(usedMs()).toBe(before);
      expect(before).toBeGreaterThan(first - 1);
      return before;
    });
  const stood = await stand();
  limiter.moveTo(stood + 100);
  await vi.waitFor(() => expect(usedMs()).toBeGreaterThan(stood + 99));
  expect(await stand()).toBeGreaterThan(stood + 99);
  limiter.release();
  await vi.waitFor(() => expect(usedMs()).toBeGreaterThan(stood + 300));
});

it("does nothing about a process that has exited", async () => {
  const { pid, end } = await spinning();
  await end();
  const limiter = CpuLimiter.on(pid, 0)!;
  limiter.moveTo(1);
  limiter.release();
});

it("has 64 slots, and reuses them", () => {
  const limiters = Array.from({ length: 100 }, () => CpuLimiter.on(2 ** 30, Infinity));
  expect(limiters.filter((limiter) => limiter !== undefined)).toHaveLength(64);
  for (const limiter of limiters) limiter?.release();
  const again = CpuLimiter.on(2 ** 30, Infinity);
  expect(again).toBeDefined();
  again!.release();
});
