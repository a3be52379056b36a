import { afterAll, beforeAll, expect, it } from "vitest";
import { fuzzAnswers } from "./fuzz-answers.ts";
import { startTarget, type Target } from "./target.ts";

let target: Target;
beforeAll(async () => {
  target = await startTarget();
});
afterAll(() => target.stop());

/** The long form is test/proofs/fuzz-answers.ts. */
it("every visitor gets a status for any answer of origins and scripts, and no exception stays uncaught", async () => {
  const { visits, failures, uncaught } = await fuzzAnswers(target, 12, 7, {
    sources: ["origin"],
    visitors: ["HTTP/1.1", "HTTP/2"],
  });
  expect(failures).toEqual([]);
  expect(visits).toBeGreaterThan(1000);
  expect(uncaught).toBe(0);
});
