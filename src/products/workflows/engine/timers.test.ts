import { afterEach, expect, it, vi } from "vitest";
import { clock, setTime } from "../../../platform/timers/clock.ts";
import { Timers } from "./timers.ts";

const hourMs = 3_600_000;
let timers: Timers | undefined;
afterEach(() => {
  timers?.stop();
  vi.useRealTimers();
  setTime();
});

/** Timers over a table of due times, a clock that can jump, and the instances that were found due. */
async function started(stored: { rid: number; wakeOn: number }[] = []) {
  vi.useFakeTimers();
  let offsetMs = 0;
  setTime(() => Date.now() + offsetMs);
  const store = { waking: async (before: number) => stored.filter(({ wakeOn }) => wakeOn < before) };
  timers = new Timers(store, clock, (error) => {
    throw error;
  });
  const due = new Set<number>();
  timers.onDue = (rids) => rids.forEach((rid) => due.add(rid));
  await timers.keepHorizon(() => undefined);
  return { timers, due, stored, jump: (ms: number): unknown => (offsetMs += ms) };
}

it("a retry is on time after the clock has jumped far", async () => {
  const { timers, due, jump } = await started();
  await vi.advanceTimersByTimeAsync(2500);
  jump(26 * hourMs);
  timers.arm(clock.now() + 100, 1);
  await vi.advanceTimersByTimeAsync(100);
  expect([...due]).toEqual([1]);
});

it("what the database has is found within seconds after a jump, and on time after the clock was put back", async () => {
  const { due, stored, jump } = await started([{ rid: 1, wakeOn: Date.now() + 20 * hourMs }]);
  jump(26 * hourMs);
  await vi.advanceTimersByTimeAsync(6000);
  expect([...due]).toEqual([1]);
  jump(-26 * hourMs);
  stored.push({ rid: 2, wakeOn: clock.now() + hourMs });
  await vi.advanceTimersByTimeAsync(hourMs);
  expect(due.has(2)).toBe(true);
});

it("timers beyond the horizon come from the database", async () => {
  const { timers, due, stored } = await started();
  const wakeOn = clock.now() + hourMs;
  timers.arm(wakeOn, 1);
  await vi.advanceTimersByTimeAsync(hourMs - 1);
  expect(due.size).toBe(0);
  stored.push({ rid: 2, wakeOn: wakeOn + hourMs });
  await vi.advanceTimersByTimeAsync(hourMs + 1);
  expect([...due]).toEqual([2]);
});
