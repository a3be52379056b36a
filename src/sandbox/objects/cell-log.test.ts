import type { Logger } from "pino";
import { expect, it } from "vitest";
import { afterEnd, gateOf } from "./cell-log.ts";

it("a cell sends only under the lease with which it started", async () => {
  const ownership = { lease: 1 as number | undefined, owns: () => true, restore: async () => {} };
  const gateNow = () => gateOf({ ownership }, ["a"], () => {})!;
  const first = gateNow();
  await expect(first()).resolves.toBeUndefined();
  ownership.lease = undefined;
  const without = gateNow();
  for (const gate of [first, without]) await expect(gate()).rejects.toThrow("has ended");
  ownership.lease = 2;
  for (const gate of [first, without]) await expect(gate()).rejects.toThrow("has ended");
});

it("the end of a cell whose last writes cannot be read is an end", async () => {
  const logged: unknown[] = [];
  const logger = { error: (facts: object) => void logged.push(facts) } as unknown as Pick<Logger, "error">;
  const unreadable = new Error("EACCES");
  await expect(afterEnd(Promise.reject(unreadable), logger)).resolves.toBeUndefined();
  expect(logged).toEqual([{ err: unreadable }]);
});
