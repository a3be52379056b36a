import { expect, it } from "vitest";
import { hexOf, textOf } from "../../dashboard/screens/kv/bytes.ts";
import { lengthOf, marksOf, placeLabels, scaleOf, spansOf } from "../../dashboard/screens/workflows/scale.ts";
import { impossible, placeOf, type TimedStep } from "../../dashboard/screens/workflows/workflow.ts";
import { statuses, transitions, type Input } from "../../src/products/workflows/transitions.ts";

const hour = 3_600_000;

it("37: folds a week of sleep, so that the work beside it can be read", () => {
  const week = 7 * 24 * hour;
  const scale = scaleOf(
    [
      { kind: "done", from: 0, to: 1000 },
      { kind: "sleep", from: 1000, to: week },
      { kind: "failed", from: week, to: week + 1000 },
    ],
    0,
    week + 1000,
  );
  expect(scale.folds).toHaveLength(1);
  expect(lengthOf(scale.folds[0]!.ms)).toBe("6 d 23 h");
  const places = [0, 1000, week, week + 1000].map((ms) => scale.at(ms));
  expect(places).toEqual([0, expect.closeTo(0.46), expect.closeTo(0.54), expect.closeTo(1)]);
});

it("gives the wait at the end room, and leaves out labels that would touch others", () => {
  const scale = scaleOf(
    [
      { kind: "done", from: 0, to: 10 },
      { kind: "wait", from: 10, to: hour },
    ],
    0,
    hour,
  );
  expect([scale.at(10), scale.at(hour)]).toEqual([expect.closeTo(0.6), expect.closeTo(1)]);
  const marks = marksOf(scale);
  expect(marks.map(({ text }) => text)).toEqual(["0", "1 h", "59 min 59 s", "10 ms", "1 h"]);
  const labels = marks.map(({ place, text }) => ({ place, width: text.length * 7 }));
  const round = (lefts: (number | undefined)[]) => lefts.map((left) => left && Number(left.toFixed(1)));
  expect(round(placeLabels(labels, 400))).toEqual([0, 379, 281.5, 222.5, undefined]);
  expect(round(placeLabels(labels, 160))).toEqual([0, 139, undefined, 78.5, undefined]);
});

it("keeps the scale straight without a long idle time, and for a sleep alone", () => {
  const busy = scaleOf([{ kind: "done", from: 0, to: 100 }], 0, 100);
  expect([busy.folds, busy.at(25), busy.at(-5), busy.at(500)]).toEqual([[], 0.25, 0, 1]);
  const idle = scaleOf([{ kind: "sleep", from: 0, to: 100 }], 0, 100);
  expect([idle.folds, idle.at(50)]).toEqual([[], 0.5]);
});

it("grows the bar of a running attempt to the time now", () => {
  const step: TimedStep = {
    type: "step",
    name: "charge-2",
    start: new Date(0).toISOString(),
    end: null,
    success: null,
    output: null,
    error: null,
    config: {},
    attempts: [{ start: new Date(0).toISOString(), end: null, success: null, error: null }],
  };
  expect(spansOf(step, 5000)).toEqual([{ kind: "open", from: 0, to: 5000 }]);
  expect(placeOf(step)).toEqual({ name: "charge", count: 2, type: "do" });
});

it("38: refuses what the server's state table refuses", () => {
  const changes = ["pause", "resume", "terminate", "restart"] as const satisfies Input[];
  for (const change of changes)
    for (const status of statuses) {
      const move = transitions[change][status]!;
      if ("refuse" in move) expect([change, status, impossible(change, status)]).not.toContain(undefined);
      // A change of the status is never refused.
      else if (move.to !== status || change === "restart")
        expect([change, status, impossible(change, status)]).toEqual([change, status, undefined]);
    }
});

it("shows bytes that are no text as hexadecimal digits", () => {
  expect(textOf(new TextEncoder().encode("grün\n"))).toBe("grün\n");
  expect([
    textOf(Uint8Array.of(0xff, 0xfe)),
    textOf(Uint8Array.of(0)),
    textOf(Uint8Array.of(13, 10)),
  ]).toEqual([undefined, undefined, undefined]);
  expect(hexOf(Uint8Array.of(0x41, 0, 0xff))).toBe(`0000  41 00 ff${" ".repeat(39)}  A..`);
});
