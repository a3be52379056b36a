import { createHash, randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import { placeOf } from "../../dashboard/core/sql-place.ts";
import { md5Of } from "../../dashboard/screens/d1/md5.ts";

it("makes the digest of an import as other programs do", async () => {
  for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 200_003]) {
    const bytes = randomBytes(length);
    expect(await md5Of(new Blob([bytes]))).toBe(createHash("md5").update(bytes).digest("hex"));
  }
});

it("finds the place of a fault in the statement that has it", () => {
  expect(
    placeOf('near "form": syntax error at offset 9: SQLITE_ERROR', "select 1;\n  select 2 form x;"),
  ).toEqual({
    line: 2,
    column: 12,
    lines: "2:   select 2 form x;\n              ^^^^",
  });
  expect(placeOf("no such column: t.naß at offset 14: SQLITE_ERROR", "select 'ü', 1, t.naß")?.column).toBe(
    14,
  );
  expect(placeOf("UNIQUE constraint failed: t.id", "insert")).toBeUndefined();
});
