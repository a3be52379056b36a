import { expect, it } from "vitest";
import { MemoryBudget } from "./memory-budget.ts";
import { mebibyte } from "../../platform/bytes.ts";

const reliefs = (...sizes: number[]): (string | undefined)[] => {
  const budget = new MemoryBudget(768 * mebibyte);
  return sizes.map((size) => budget.reliefFor(size * mebibyte));
};

it("does nothing below the budget", () => {
  expect(reliefs(52, 600, 639, 640)).toEqual([undefined, undefined, undefined, undefined]);
});

it("unloads scripts once for each step of growth", () => {
  expect(reliefs(641, 645, 649, 650, 657, 659)).toEqual([
    "unload",
    undefined,
    undefined,
    "unload",
    undefined,
    "unload",
  ]);
});

it("starts again after memory was released", () => {
  expect(reliefs(690, 650, 655, 659)).toEqual(["unload", undefined, undefined, "unload"]);
  expect(reliefs(690, 500, 641)).toEqual(["unload", undefined, "unload"]);
});

it("is replaced before the budget is spent", () => {
  expect(reliefs(641, 735, 737, 760)).toEqual(["unload", "unload", "replace", "replace"]);
});

it("reports nothing for a cell that has exited", () => {
  expect(reliefs(Number.NaN)).toEqual([undefined]);
});
