import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it, onTestFinished, vi } from "vitest";
import { CpuClock } from "./cpu-clock.ts";

async function start(code: string): Promise<{ pid: number; end: () => Promise<void> }> {
  const child = spawn(process.execPath, ["-e", `process.stdout.write("on"); ${code}`]);
  const exited = once(child, "exit");
  const end = async (): Promise<void> => {
    child.kill("SIGKILL");
    await exited;
  };
  onTestFinished(end);
  await once(child.stdout, "data");
  return { pid: child.pid!, end };
}

/** Differences between successive values of a clock, for a while. */
function steps(read: () => number, forMs: number): number[] {
  const until = performance.now() + forMs;
  const all: number[] = [];
  for (let last = read(); performance.now() < until;) {
    const now = read();
    all.push(now - last);
    last = now;
  }
  return all;
}

it("advances between the kernel's ticks while the process runs, and is never behind the kernel's value", async () => {
  const { pid } = await start("for (;;) {}");
  const [clock, kernel] = [new CpuClock(pid), new CpuClock(pid)];
  onTestFinished(() => [clock, kernel].forEach((each) => each.close()));
  // On a busy machine the process waits for a processor most of the time.
  await vi.waitFor(() => {
    const moves = (read: () => number): number => steps(read, 200).filter((step) => step > 0).length;
    expect(moves(() => clock.nowMs())).toBeGreaterThan(5 * moves(() => kernel.writtenMs()));
  });
  for (let i = 0; i < 2000; i++) {
    const written = kernel.writtenMs();
    expect(clock.nowMs()).toBeGreaterThanOrEqual(written);
  }
});

it("stands still while the process waits", async () => {
  const { pid } = await start("setTimeout(() => {}, 60_000);");
  const clock = new CpuClock(pid);
  onTestFinished(() => clock.close());
  await vi.waitFor(() => expect(Math.max(...steps(() => clock.nowMs(), 50))).toBe(0));
});

it("gives NaN for a process that has exited", async () => {
  const { pid, end } = await start("setTimeout(() => {}, 60_000);");
  const clock = new CpuClock(pid);
  await end();
  await vi.waitFor(() => expect(clock.nowMs()).toBeNaN());
  clock.close();
  expect(clock.writtenMs()).toBeNaN();
});
