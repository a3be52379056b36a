import { describe, expect, it, vi } from "vitest";
import { fc } from "../../../test/helpers/properties.ts";
import { FilterFault, operatorNames, readFilter } from "./filter.ts";

const fields = ["Status", "Path", "IsSub", "Tags"];
type Event = Record<string, unknown>;
const matches = (where: unknown, event: Event): boolean =>
  readFilter(JSON.stringify({ where }), fields).matches((field) => event[field] ?? null);

describe("a comparison", () => {
  const event: Event = { Status: 404, Path: "/static/a.css", IsSub: true, Tags: ["a", "b"] };
  it.each([
    ["Status", "eq", 404, true],
    ["Status", "eq", "404", true],
    ["Status", "!eq", "404", false],
    ["Status", "lt", 404, false],
    ["Status", "leq", "404", true],
    ["Status", "gt", "30", true],
    ["Status", "geq", 405, false],
    ["Status", "in", [200, "404"], true],
    ["Status", "!in", [200, 201], true],
    ["Path", "startsWith", "/static", true],
    ["Path", "!startsWith", "/static", false],
    ["Path", "endsWith", ".css", true],
    ["Path", "!endsWith", ".js", true],
    ["Path", "contains", "/a.", true],
    ["Path", "!contains", "/b.", true],
    ["Path", "lt", 5, false],
    ["IsSub", "eq", true, true],
    ["IsSub", "eq", "true", true],
    ["Tags", "contains", "b", true],
    ["Tags", "!contains", "c", true],
  ])("%s %s %j is %j", (key, operator, value, expected) => {
    expect(matches({ key, operator, value }, event)).toBe(expected);
  });

  it("on an unknown field holds only if it is negated", () => {
    for (const operator of operatorNames) {
      const value = operator.endsWith("in") ? ["1"] : "1";
      expect([operator, matches({ key: "Path", operator, value }, {})]).toEqual([
        operator,
        operator.startsWith("!"),
      ]);
    }
  });
});

it("meets the values of a list as if each were compared alone", () => {
  const value = fc.oneof(
    fc.constantFrom("1", "1.0", " 1", "", "true", "false", "NaN", "a", 0, 1, 404, true, false),
    fc.string({ maxLength: 3 }),
    fc.integer({ min: 0, max: 3 }),
  );
  const found = fc.oneof(value, fc.constant(null), fc.constant(["1"]), fc.constant({ a: 1 }));
  fc.assert(
    fc.property(fc.array(value, { minLength: 1, maxLength: 5 }), found, (list, status) => {
      const alone = list.some((each) =>
        matches({ key: "Status", operator: "eq", value: each }, { Status: status }),
      );
      expect(matches({ key: "Status", operator: "in", value: list }, { Status: status })).toBe(alone);
    }),
  );
});

it("examines a list of values once, not for each event", () => {
  const value = Array.from({ length: 1000 }, (_, i) => i);
  const { matches: holds } = readFilter(
    JSON.stringify({ where: { key: "Status", operator: "in", value } }),
    fields,
  );
  const some = vi.spyOn(Array.prototype, "some");
  for (let i = 0; i < 100; i++) holds(() => i * 20);
  expect(some).not.toHaveBeenCalled();
  some.mockRestore();
});

type Node =
  | { key: "Status"; operator: "eq" | "!eq" | "lt" | "geq"; value: number }
  | { and: Node[] }
  | { or: Node[] };
const { node } = fc.letrec<{ node: Node; leaf: Node; group: Node }>((tie) => ({
  leaf: fc.record({
    key: fc.constant("Status" as const),
    operator: fc.constantFrom("eq" as const, "!eq" as const, "lt" as const, "geq" as const),
    value: fc.integer({ min: 0, max: 4 }),
  }),
  group: fc.oneof(
    fc.record({ and: fc.array(tie("node"), { minLength: 1, maxLength: 3 }) }),
    fc.record({ or: fc.array(tie("node"), { minLength: 1, maxLength: 3 }) }),
  ),
  node: fc.oneof({ maxDepth: 3 }, tie("leaf"), tie("group")),
}));

/** The meaning of a filter, in another way: by the values that it takes. */
function taken(of: Node, values: readonly number[]): number[] {
  if ("and" in of) return of.and.reduce((left, each) => taken(each, left), [...values]);
  if ("or" in of) {
    const all = of.or.flatMap((each) => taken(each, values));
    return values.filter((value) => all.includes(value));
  }
  const holds = {
    eq: (value: number) => value === of.value,
    "!eq": (value: number) => value !== of.value,
    lt: (value: number) => value < of.value,
    geq: (value: number) => value >= of.value,
  }[of.operator];
  return values.filter(holds);
}
const sizeOf = (of: Node): number =>
  "and" in of
    ? of.and.reduce((sum, each) => sum + sizeOf(each), 0)
    : "or" in of
      ? of.or.reduce((sum, each) => sum + sizeOf(each), 0)
      : 1;

it("groups mean intersection and union", () => {
  const values = [0, 1, 2, 3, 4, 5];
  fc.assert(
    fc.property(
      node.filter((each) => sizeOf(each) <= 30),
      (where) => {
        const found = values.filter((value) => matches(where, { Status: value }));
        expect(found).toEqual(taken(where, values));
      },
    ),
  );
});

it("any JSON is read or refused with a message", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.json(),
        fc.string(),
        node.map((where) => JSON.stringify({ where })),
      ),
      (text) => {
        try {
          readFilter(text, fields);
        } catch (error) {
          expect(error).toBeInstanceOf(FilterFault);
          expect((error as Error).message).toMatch(/^Expected /);
        }
      },
    ),
  );
});

it.each([
  ["{", /Expected JSON/],
  ["[]", /Expected an object/],
  ['{"where":{},"more":1}', /Expected an object/],
  ['{"where":{"and":[]}}', /Expected a group/],
  ['{"where":{"and":[1],"or":[1]}}', /Expected a group/],
  ['{"where":{"key":"No","operator":"eq","value":1}}', /Expected a field of the data set .* "No"/],
  ['{"where":{"key":"Path","operator":"like","value":1}}', /Expected one of .* for operator/],
  ['{"where":{"key":"Path","operator":"constructor","value":1}}', /Expected one of .* for operator/],
  ['{"where":{"key":"Status","operator":"lt","value":"x"}}', /Expected a number for lt/],
  ['{"where":{"key":"Status","operator":"in","value":"200,201"}}', /Expected a list of values for in/],
  ['{"where":{"key":"Path","operator":"eq","value":{}}}', /Expected a text, a number or a flag/],
  ['{"where":{"key":"Path","operator":"eq","value":1,"not":1}}', /Expected key, operator and value/],
  [
    JSON.stringify({
      where: { or: Array.from({ length: 31 }, () => ({ key: "Path", operator: "eq", value: "a" })) },
    }),
    /at most 30/,
  ],
  [`{"where":${'{"and":['.repeat(9)}{}${"]}".repeat(9)}}`, /at most 8 groups/],
  ["x".repeat(20_000), /at most 16384 characters/],
])("refuses %s", (text, message) => {
  expect(() => readFilter(text, fields)).toThrow(message);
});
