import { expect, it } from "vitest";
import { gateOf } from "./cell-log.ts";

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
