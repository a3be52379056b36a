import { expect, it } from "vitest";
import { prove } from "../proofs/objects.ts";

/** The short form of test/proofs/objects.ts: each way of striking once. */
it("kills and stops lose no acknowledged write, make none twice, and never let two instances answer", async () => {
  const { rounds, acknowledged, instances, ...faults } = await prove(5, 1000);
  expect(rounds).toEqual({ "kill cell": 2, "stop and go on": 1, "stop and kill": 1, "kill server": 1 });
  expect(faults).toMatchObject({ lost: 0, doubled: 0, late: [] });
  expect(acknowledged).toBeGreaterThan(100);
  // Four objects, each of which began again at least four times.
  expect(instances).toBeGreaterThanOrEqual(4 * 5);
});
