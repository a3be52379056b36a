import { afterAll, beforeAll, expect, it } from "vitest";
import { fuzzListeners } from "./fuzz-listeners.ts";
import { startTarget, type Target } from "./target.ts";

let target: Target;
beforeAll(async () => {
  target = await startTarget();
});
afterAll(() => target.stop());

/** The long form is test/proofs/fuzz-listeners.ts. */
it("all listeners continue to respond after any input of clients, and no exception stays uncaught", async () => {
  const { messages, failures, uncaught, socketsLeft } = await fuzzListeners(target, 2000, 7, 2);
  expect(failures).toEqual([]);
  expect(messages).toBeGreaterThanOrEqual(2000);
  expect({ uncaught, socketsLeft }).toEqual({ uncaught: 0, socketsLeft: 0 });
});
