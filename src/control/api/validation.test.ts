import { expect, it } from "vitest";
import { z } from "zod";
import { validate } from "./validation.ts";

it("refuses a list that is too long without looking at its items", () => {
  const parsed: unknown[] = [];
  const item = z.unknown().refine((value) => {
    parsed.push(value);
    return value === "good";
  });
  const list = z.array(item).max(3);
  const [long, short] = [Array<string>(100_000).fill("bad"), ["good", "good"]];
  const cases: [z.ZodType, unknown, unknown, string][] = [
    [list, long, short, "the body"],
    [z.strictObject({ all: list.optional() }), { all: long }, { all: short }, "all"],
    [
      z.strictObject({ in: z.strictObject({ all: list }) }),
      { in: { all: long } },
      { in: { all: short } },
      "in.all",
    ],
  ];
  for (const [schema, wrong, right, field] of cases) {
    expect(() => validate(schema, wrong, "body")).toThrow(
      `Expected at most 3 items for ${field} but received`,
    );
    expect(parsed).toEqual([]);
    expect(validate(schema, right, "body")).toEqual(right);
    parsed.length = 0;
  }
});
