import { fc } from "../../../test/helpers/properties.ts";
import { expect, it } from "vitest";
import { anyExpression, anyRequest } from "../arbitraries.ts";
import {
  compile,
  evaluate,
  parseExpression,
  requestFields,
  TooMuchWork,
  trace,
  type Expression,
  type FieldSource,
} from "../language.ts";

function parse(text: string, missingNotEqual = false): Expression {
  const result = parseExpression(text, { missingNotEqual });
  if (!result.ok) throw new Error(result.error.message);
  return result.expression;
}

it("gives the same result from generated code and from the tree", () => {
  fc.assert(
    fc.property(
      anyExpression,
      fc.array(anyRequest, { minLength: 3, maxLength: 6 }),
      fc.boolean(),
      (text, requests, flag) => {
        fc.pre(text.length <= 4096);
        const expression = parse(text, flag);
        const generated = compile(expression);
        for (const request of requests) {
          const expected = evaluate(expression, requestFields(request));
          expect(generated(requestFields(request))).toBe(expected);
          expect(trace(expression, requestFields(request)).matched).toBe(expected);
        }
      },
    ),
    { numRuns: 1500 },
  );
});

it("treats every field as possibly missing", () => {
  fc.assert(
    fc.property(anyExpression, fc.boolean(), (text, flag) => {
      fc.pre(text.length <= 4096);
      const expression = parse(text, flag);
      const nothing: FieldSource = {};
      expect(compile(expression)(nothing)).toBe(evaluate(expression, nothing));
    }),
    { numRuns: 500 },
  );
});

it("returns true for ne on a missing value only with the option", () => {
  const fields = requestFields({
    method: "GET",
    url: "/",
    headers: [],
    tls: true,
    ip: "::1",
    httpVersion: "HTTP/1.1",
  });
  const text = 'http.request.headers["x-miss"][0] ne "a"';
  for (const [flag, expected] of [
    [false, false],
    [true, true],
  ] as const) {
    expect(evaluate(parse(text, flag), fields)).toBe(expected);
    expect(compile(parse(text, flag))(fields)).toBe(expected);
  }
});

it("never writes text of an expression into the generated source", () => {
  const evil =
    'http.host eq "\\");globalThis.broken=1;(\\"" or http.request.headers["\\"];globalThis.broken=1;//"][0] eq "a"';
  const fields = requestFields({
    method: "GET",
    url: "/",
    headers: [],
    tls: true,
    ip: "::1",
    httpVersion: "HTTP/1.1",
  });
  expect(compile(parse(evil))(fields)).toBe(false);
  expect("broken" in globalThis).toBe(false);
});

it("binds operators by precedence", () => {
  const shape = (text: string): unknown =>
    JSON.parse(
      JSON.stringify(parse(text).root, (key, value: unknown) =>
        key === "start" || key === "end" ? undefined : value,
      ),
    );
  const implicit = shape('not http.host eq "a" and ssl or ssl xor ssl');
  expect(implicit).toEqual(shape('((not http.host eq "a") and ssl) or (ssl xor ssl)'));
  expect(implicit).not.toEqual(shape('not (http.host eq "a" and ssl) or ssl xor ssl'));
});

it("reads only the fields that decide the result", () => {
  const asked: string[] = [];
  const fields = new Proxy<FieldSource>(
    {},
    {
      get: (_, name) => {
        asked.push(String(name));
        return name === "ssl" ? false : undefined;
      },
    },
  );
  compile(parse('ssl and http.host eq "a"'))(fields);
  expect(asked).toEqual(["ssl"]);
});

it("ends rules whose functions would make texts without a limit", () => {
  const request = { method: "GET", headers: [], tls: true, ip: "::1", httpVersion: "HTTP/1.1" };
  const fieldsOf = () => requestFields({ ...request, url: `/?${"a".repeat(1000)}` });
  const query = "http.request.uri.query";
  const joined = (times: number): string =>
    times === 0 ? query : `join(split(${query}, "a", 128), ${joined(times - 1)})`;
  // Each join makes its text 127 times as long.
  const [small, huge] = [parse(`len(${joined(1)}) gt 100000`), parse(`len(${joined(3)}) gt 1`)];
  for (const holds of [compile(small), (fields: FieldSource) => evaluate(small, fields)])
    expect(holds(fieldsOf())).toBe(true);
  for (const holds of [compile(huge), (fields: FieldSource) => evaluate(huge, fields)])
    expect(() => holds(fieldsOf())).toThrow(TooMuchWork);
  // The limit is one of the request, whose rules share its fields.
  const [rule, fields] = [compile(parse(`len(lower(${joined(2)})) gt 1`)), fieldsOf()];
  const all = (): void => {
    for (let i = 0; i < 10; i++) rule(fields);
  };
  expect(all).toThrow(TooMuchWork);
  expect(rule(fieldsOf())).toBe(true);
});

it.each([
  ["contains", '"ac"'],
  ["matches", '"a[^c]c"'],
  ["wildcard", '"*a?c*"'],
])("ends rules that search long texts too often: %s", (operator, pattern) => {
  const text = `http.request.body.raw ${operator} ${pattern}`;
  const count = 70;
  const expression = parse(Array.from({ length: count }, () => text).join(" or "));
  const short: FieldSource = { "http.request.body.raw": "ab".repeat(500) };
  const long = (): FieldSource => ({ "http.request.body.raw": "ab".repeat(2 ** 19) });
  for (const holds of [compile(expression), (fields: FieldSource) => evaluate(expression, fields)]) {
    expect(holds(short)).toBe(false);
    expect(() => holds(long())).toThrow(TooMuchWork);
  }
});

it("decodes escapes of any number in a row", () => {
  const fields: FieldSource = { "http.request.uri.query": "%u0041".repeat(300_000) };
  const expression = parse('len(url_decode(http.request.uri.query, "u")) eq 300000');
  expect(compile(expression)(fields)).toBe(true);
});
