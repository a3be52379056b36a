import { expect, it } from "vitest";
import { MemoryBudget } from "./memory-budget.ts";

const mebibyte = 1024 * 1024;
const reliefs = (...sizes: number[]): (string | undefined)[] => {
  const budget = new MemoryBudget(768 * mebibyte);
  return sizes.map((size) => budget.look(size * mebibyte));
};

it("does nothing as long as there is room", () => {
  expect(reliefs(52, 600, 639, 640)).toEqual([undefined, undefined, undefined, undefined]);
});

it("gives up scripts once for each step of growth", () => {
  expect(reliefs(641, 645, 649, 650, 657, 659)).toEqual([
    "unload",
    undefined,
    undefined,
    "unload",
    undefined,
    "unload",
  ]);
});

it("begins anew where memory has come back", () => {
  expect(reliefs(690, 650, 655, 659)).toEqual(["unload", undefined, undefined, "unload"]);
  expect(reliefs(690, 500, 641)).toEqual(["unload", undefined, "unload"]);
});

it("is replaced before the budget is spent", () => {
  expect(reliefs(641, 735, 737, 760)).toEqual(["unload", "unload", "replace", "replace"]);
});

it("says nothing of a cell that is gone", () => {
  expect(reliefs(Number.NaN)).toEqual([undefined]);
});
