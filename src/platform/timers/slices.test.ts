import { expect, it } from "vitest";
import { atOnce, inSlices, type Sliced } from "./slices.ts";

/** Work that takes far longer than a slice. */
function* counting(items: number): Sliced<number> {
  for (let count = 0; ; count++) {
    if (count === items) return count;
    const endMs = performance.now() + 2;
    while (performance.now() < endMs);
    yield;
  }
}

it("work over many items pauses, so that others have their turn before its end", async () => {
  let isDone = false;
  let hadTurn = false;
  setImmediate(() => (hadTurn = !isDone));
  const work = inSlices(counting(25)).finally(() => (isDone = true));
  expect(await work).toBe(25);
  expect(hadTurn).toBe(true);
});

it("can be done at once too", () => {
  expect(atOnce(counting(3))).toBe(3);
});
