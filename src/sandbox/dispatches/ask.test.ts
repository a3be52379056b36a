import { expect, it } from "vitest";
import { readDispatches } from "./ask.ts";

const read = (value: unknown): unknown => readDispatches(Buffer.from(JSON.stringify(value)));

it("takes only whole numbers of a bounded size from a cell, and short texts", () => {
  const scripts = [
    ["a", { requests: 3, faults: 1, lastFault: "x".repeat(1000) }],
    ["b", { requests: -1, faults: 1e300, lastFault: 7 }],
    [5, null],
    "c",
  ];
  expect(read({ scripts, targets: ["a b", 4] })).toEqual({
    scripts: [
      ["a", { requests: 3, faults: 1, lastFault: "x".repeat(120) }],
      ["b", { requests: 0, faults: 0 }],
      ["", { requests: 0, faults: 0 }],
      ["", { requests: 0, faults: 0 }],
    ],
    targets: ["a b", ""],
  });
});

it.each([[[]], [{}], [{ scripts: [], targets: 1 }], ["text"]])("refuses %j", (value) => {
  expect(() => read(value)).toThrow(/Expected/);
});
