import { globSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { ApiErrors, type ErrorCodes } from "../src/control/api/errors.ts";
import { validate } from "../src/control/api/validation.ts";
import { errorTables, operations } from "../src/capabilities.ts";
import { holeIn } from "./helpers/messages.ts";

/** Checks that no error message has a hole: an empty list, a missing value, or a library's text. */

it("every table of errors is tested", () => {
  const files = globSync("src/**/*.ts");
  const exported = files.flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(/^export const (\w+Errors) = (?:defineErrors\(|\{)/gm)].map(
      ([, name]) => name!,
    ),
  );
  const declared = files
    .filter((file) => file.endsWith("/capability.ts"))
    .map((file) => readFileSync(file, "utf8"))
    .join("");
  // Two tables of numbers, and one whose messages come from its callers.
  const others = new Set(["tsigErrors", "extendedErrors", "inputErrors"]);
  const missing = exported.filter(
    (name) => !others.has(name) && !new RegExp(`errors: ${name}\\b`).test(declared),
  );
  expect(missing).toEqual([]);
});

it("the API knows the status and the code of every error of a domain", () => {
  const known = Object.assign({}, ...operations.map((each) => each.errorCodes)) as ErrorCodes;
  const declared = errorTables.flatMap(({ codes }) => Object.entries(codes ?? {}));
  expect(declared.filter(([kind, codes]) => known[kind] !== codes)).toEqual([]);
});

type Factory = (...details: unknown[]) => { message: string; chain?: readonly { message: string }[] };
const factories = errorTables.flatMap(({ title, errors: table }) =>
  Object.entries(table).map(([name, make]) => [`${title}: ${name}`, make as unknown as Factory] as const),
);

describe.each(factories)("%s", (_, make) => {
  const detailsMax = 4;
  const messagesOf = (details: readonly unknown[]): string[] => {
    const { message, chain = [] } = make(...details);
    return [message, ...chain.map((each) => each.message)];
  };
  const list = ["one", "two"];
  const holesOf = (details: readonly unknown[]): string[] =>
    messagesOf(details).filter((message) => holeIn(message) !== undefined);

  it("has no holes with details of any kind", () => {
    // The types of a factory's parameters are unknown here. A list of one element prints like the element.
    expect(holesOf(Array.from({ length: detailsMax }, () => ["word"]))).toEqual([]);
  });

  it("has no holes with an empty list, if it joins lists", () => {
    for (let at = 0; at < detailsMax; at++) {
      const withList = (each: readonly string[]): unknown[] =>
        Array.from({ length: detailsMax }, (__, index) => (index === at ? each : ["word"]));
      if (!messagesOf(withList(list)).some((message) => message.includes("one, two"))) continue;
      expect(holesOf(withList([]))).toEqual([]);
    }
  });
});

/** Invalid values at every position of a schema. */
const wrong = [
  null,
  {},
  [],
  "",
  "x",
  -1,
  1.5,
  1e99,
  true,
  [null],
  [{}],
  { a: 1 },
  ["x", "x"],
  "x".repeat(9000),
];
function* refused(schema: z.core.$ZodType, depth = 0): Generator {
  yield undefined;
  yield* wrong;
  if (depth > 4) return;
  const { def } = (schema as z.core.$ZodTypes)._zod;
  switch (def.type) {
    case "array":
      for (const value of refused(def.element, depth + 1)) yield [value];
      return;
    case "record":
      for (const value of refused(def.valueType, depth + 1)) yield { key: value };
      yield { ["k".repeat(9000)]: 1 };
      return;
    case "union":
      for (const option of def.options) yield* refused(option, depth + 1);
      return;
    case "pipe":
      yield* refused(def.in, depth);
      yield* refused(def.out, depth);
      return;
    case "object":
      for (const [key, shape] of Object.entries(def.shape))
        for (const value of refused(shape, depth + 1)) yield { [key]: value };
      return;
    case "optional":
    case "nullable":
    case "default":
    case "prefault":
      yield* refused(def.innerType, depth);
      return;
    default:
  }
}

it("the messages of every operation about bodies and queries have no holes", () => {
  const bad = new Set<string>();
  let refusals = 0;
  for (const { id, body, query } of operations) {
    for (const [where, schema] of [
      ["body", body],
      ["query", query],
    ] as const) {
      if (schema === undefined) continue;
      for (const value of refused(schema)) {
        try {
          validate(schema, value, where);
        } catch (error) {
          if (!(error instanceof ApiErrors)) throw error;
          for (const { message } of error.errors) {
            refusals++;
            if (holeIn(message) !== undefined) bad.add(`${id}: ${message}`);
          }
        }
      }
    }
  }
  expect([...bad].slice(0, 30)).toEqual([]);
  expect(refusals).toBeGreaterThan(20_000);
});
