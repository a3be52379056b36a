import { expect, it } from "vitest";
import { attackAll } from "./hostile-cell/hostile-cell.ts";

/** The long form is test/proofs/hostile-cell.ts. An unhandled exception fails the test too. */
it("a cell that speaks its protocols wrongly changes no other run and fills no memory", async () => {
  for (const row of await attackAll(2500, Number(process.env["SEED"] ?? 1))) {
    expect(row.changed, row.protocol).toBe(0);
    expect(row.innocent, row.protocol).toBeGreaterThan(0);
    expect(row.grewMebibytes, row.protocol).toBeLessThan(256);
  }
});
