import { expect, it } from "vitest";
import { z } from "zod";
import { operations } from "../../capabilities.ts";
import { firstIssues, issuesMax } from "./first-issues.ts";

interface JsonSchema {
  $ref?: string;
  $defs?: Record<string, JsonSchema>;
  type?: string;
  properties?: Record<string, JsonSchema>;
  additionalProperties?: JsonSchema | boolean;
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
}
type Wrap = (part: unknown) => unknown;

const count = 260;
const many = (value: unknown): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, value]));

/** Bodies with many wrong, and sometimes right, parts in every place of a schema where a list or an object may stand. */
function* bodies(schema: JsonSchema, defs: Record<string, JsonSchema>, wrap: Wrap, depth = 0): Generator {
  if (depth > 6) return;
  const next = (each: JsonSchema, inside: Wrap): Generator => bodies(each, defs, inside, depth + 1);
  if (schema.$ref !== undefined) {
    const named = defs[schema.$ref.split("/").at(-1)!];
    if (named !== undefined) yield* next(named, wrap);
    return;
  }
  for (const each of [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]) yield* next(each, wrap);
  if (schema.type === "object") yield wrap(many(0));
  for (const [name, each] of Object.entries(schema.properties ?? {}))
    yield* next(each, (part) => wrap({ [name]: part }));
  const values = schema.additionalProperties;
  if (typeof values === "object") yield* next(values, (part) => wrap(many(part)));
  if (schema.items === undefined) return;
  for (const item of [0, "text", null, {}, [], { type: "A" }]) yield wrap(Array(count).fill(item));
  yield* next(schema.items, (part) => wrap(Array(3).fill(part)));
}

it("refuses only what the schema refuses", () => {
  const counts = { early: 0, late: 0, taken: 0 };
  for (const { id, body } of operations) {
    if (body === undefined) continue;
    const json = z.toJSONSchema(body, { io: "input", unrepresentable: "any" }) as JsonSchema;
    for (const value of bodies(json, json.$defs ?? {}, (part) => part)) {
      const early = firstIssues(body, value);
      const { success } = body.safeParse(value);
      counts[early.length > 0 ? "early" : success ? "taken" : "late"]++;
      if (early.length > 0) expect([id, early, success]).toEqual([id, early, false]);
    }
  }
  expect(counts.early).toBeGreaterThan(500);
  expect(counts.taken).toBeGreaterThan(20);
});

it("checks no more parts than it has issues of", () => {
  let checks = 0;
  const part = z.unknown().refine(() => {
    checks++;
    return false;
  });
  const list = z.array(part);
  const record = z.record(z.string(), part);
  const bad = Array<number>(50_000).fill(0);
  const cases: [z.ZodType, unknown][] = [
    [list, bad],
    [z.strictObject({ in: list.optional() }), { in: bad }],
    [z.array(z.strictObject({ in: list.nullable() })), Array.from({ length: 100 }, () => ({ in: bad }))],
    [record, many(0)],
    [z.union([z.strictObject({ in: list }), z.strictObject({ out: z.string() })]), { in: bad }],
    [z.array(z.union([part, z.string()])), bad],
  ];
  for (const [schema, value] of cases) {
    checks = 0;
    expect(firstIssues(schema, value)).toHaveLength(schema.def.type === "union" ? 1 : issuesMax);
    expect(checks).toBe(issuesMax);
  }
});

it("names the first unknown fields of an object that has many", () => {
  const issues = firstIssues(z.strictObject({ known: z.string() }), { known: "text", ...many(0) });
  expect(issues).toMatchObject([{ code: "unrecognized_keys", path: [] }]);
  expect(issues[0]).toHaveProperty(
    "keys",
    Array.from({ length: issuesMax }, (_, i) => `k${i}`),
  );
});
