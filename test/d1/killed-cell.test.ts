import { expect, it } from "vitest";
import { killDatabaseCells } from "./killed-cell.ts";

it("the cell of a database is killed 20 times: no acknowledged write is lost, and none is made twice", async () => {
  const tally = await killDatabaseCells(20);
  expect(tally).toMatchObject({ lost: 0, doubled: 0 });
  expect(tally.acknowledged).toBeGreaterThan(80);
  // The caller learns that the answer is missing, and the platform does not repeat the write.
  expect(tally.unanswered).toBeGreaterThan(0);
  expect(tally.errors.length).toBeGreaterThan(0);
  for (const error of tally.errors) expect(error).toMatch(/^D1_ERROR: Network connection lost\.$/);
});
