import { expect, it } from "vitest";
import { BoundedLabel } from "./bounded-label.ts";

it("gives the first values series of their own, and all further values one shared series", () => {
  const label = new BoundedLabel(2);
  expect(["a", "b", "c", "a", "d"].map((value) => label.of(value))).toEqual([
    "a",
    "b",
    "other",
    "a",
    "other",
  ]);
});
