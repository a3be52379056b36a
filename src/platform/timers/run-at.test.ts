import { afterEach, expect, it, vi } from "vitest";
import { setTime } from "./clock.ts";
import { clockMoved, runAt } from "./run-at.ts";

const hourMs = 3_600_000;

afterEach(() => {
  vi.useRealTimers();
  setTime();
});

/** A clock that can jump, as that of a machine that slept. */
function jumpingClock(): (ms: number) => void {
  vi.useFakeTimers();
  let offsetMs = 0;
  setTime(() => Date.now() + offsetMs);
  return (ms) => (offsetMs += ms);
}

it("runs at its time, once", () => {
  jumpingClock();
  const run = vi.fn();
  runAt(Date.now() + hourMs, run);
  vi.advanceTimersByTime(hourMs - 1);
  expect(run).not.toHaveBeenCalled();
  vi.advanceTimersByTime(2 * hourMs);
  expect(run).toHaveBeenCalledOnce();
});

it("runs within five seconds when the clock has jumped beyond its time", () => {
  const jump = jumpingClock();
  const run = vi.fn();
  runAt(Date.now() + 26 * hourMs, run);
  jump(27 * hourMs);
  vi.advanceTimersByTime(5000);
  expect(run).toHaveBeenCalledOnce();
});

it("runs within five seconds when the clock was put back", () => {
  const jump = jumpingClock();
  const run = vi.fn();
  runAt(Date.now() + hourMs, run);
  vi.advanceTimersByTime(5000);
  jump(-26 * hourMs);
  expect(run).not.toHaveBeenCalled();
  vi.advanceTimersByTime(5000);
  expect(run).toHaveBeenCalledOnce();
});

it("is exact after the test kit has moved the clock, and does not run after its end", () => {
  const jump = jumpingClock();
  const [run, cancelled] = [vi.fn(), vi.fn()];
  runAt(Date.now() + hourMs + 100, run);
  const cancel = runAt(Date.now() + hourMs + 100, cancelled);
  jump(hourMs);
  cancel();
  clockMoved();
  vi.advanceTimersByTime(100);
  expect(run).toHaveBeenCalledOnce();
  expect(cancelled).not.toHaveBeenCalled();
});
