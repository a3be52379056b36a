import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { countDispatch, endTargets, takeDispatches } from "./worker/counts.ts";

const targetsOf = (run: string): string => takeDispatches([run]).targets[0]!;
beforeEach(() => vi.useFakeTimers({ now: Date.UTC(2026, 10, 23), toFake: ["Date"] }));
afterEach(() => vi.useRealTimers());

it("knows the targets of a run until its answer, however often it is asked, and half a minute longer", () => {
  countDispatch("slow", "a", true);
  countDispatch("slow", "b", true);
  countDispatch("slow", "a", true);
  for (let asked = 0; asked < 10; asked++) {
    vi.advanceTimersByTime(60_000);
    expect(targetsOf("slow")).toBe("a b");
  }
  endTargets("slow");
  vi.advanceTimersByTime(29_000);
  endTargets("another");
  expect(targetsOf("slow")).toBe("a b");
  for (const run of ["first", "second"]) {
    vi.advanceTimersByTime(30_000);
    countDispatch(run, "c", false);
  }
  expect([targetsOf("slow"), targetsOf("second")]).toEqual(["", "c"]);
});

it("keeps a bounded number of answered runs", () => {
  for (let run = 0; run < 60_000; run++) {
    countDispatch(`run ${run}`, "a", true);
    endTargets(`run ${run}`);
  }
  expect(targetsOf("run 0")).toBe("");
  expect(targetsOf("run 40000")).toBe("a");
});
