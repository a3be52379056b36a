import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it, onTestFinished, vi } from "vitest";
import { Brake } from "./brake.ts";
import { CpuClock } from "./cpu-clock.ts";

/** A process that does nothing but use CPU time, and its clock. */
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

it("makes a process stand at its end, lets it go on to the next, and leaves it alone when it is released", async () => {
  const { pid, usedMs } = await spinning();
  const first = usedMs() + 100;
  const brake = Brake.on(pid, first)!;
  /** Where it stands, once it does. */
  const stand = async (): Promise<number> =>
    vi.waitFor(
      async () => {
        const before = usedMs();
        await new Promise((resolve) => setTimeout(resolve, 50));
        expect(usedMs()).toBe(before);
        expect(before).toBeGreaterThan(first - 1);
        return before;
      },
      { timeout: 20_000 },
    );
  const stood = await stand();
  brake.moveTo(stood + 100);
  await vi.waitFor(() => expect(usedMs()).toBeGreaterThan(stood + 99), { timeout: 20_000 });
  expect(await stand()).toBeGreaterThan(stood + 99);
  brake.release();
  await vi.waitFor(() => expect(usedMs()).toBeGreaterThan(stood + 300), { timeout: 20_000 });
});

it("does nothing about a process that is gone", async () => {
  const { pid, end } = await spinning();
  await end();
  const brake = Brake.on(pid, 0)!;
  brake.moveTo(1);
  brake.release();
});

it("has a number of places, and no more; they are used again", () => {
  const brakes = Array.from({ length: 100 }, () => Brake.on(2 ** 30, Infinity));
  expect(brakes.filter((brake) => brake !== undefined)).toHaveLength(64);
  for (const brake of brakes) brake?.release();
  const again = Brake.on(2 ** 30, Infinity);
  expect(again).toBeDefined();
  again!.release();
});
