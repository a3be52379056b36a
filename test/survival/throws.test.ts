import { expect, it } from "vitest";
import { fuzzThrows } from "./fuzz-throws.ts";

/** The long form is test/proofs/fuzz-throws.ts. */
it("a script may throw any value from any handler: every request ends, and no exception stays uncaught", async () => {
  const { throws, failures, uncaught } = await fuzzThrows(2, 7, false);
  expect(failures).toEqual([]);
  expect(throws).toBeGreaterThan(500);
  expect(uncaught).toBe(0);
});
