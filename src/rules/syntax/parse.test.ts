import { fc } from "../../../test/helpers/properties.ts";
import { describe, expect, it } from "vitest";
import { fields, functions, invalidExpressionMessage, parseExpression } from "../language.ts";
import { anyExpression } from "../arbitraries.ts";

const pieces = [
  ...[
    "http.host",
    "ssl",
    "ip.src",
    "http.request.headers",
    "len",
    "any",
    "all",
    "lower",
    "concat",
    "regex_replace",
  ],
  ...[
    "eq",
    "ne",
    "in",
    "contains",
    "matches",
    "wildcard",
    "strict wildcard",
    "and",
    "or",
    "xor",
    "not",
    "&",
    "~",
  ],
  ...[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "*",
    ",",
    "$",
    '"',
    "\\",
    'r#"',
    "..",
    "/",
    ":",
    ".",
    "-",
    "0x",
    "08",
    "1.2.3.4",
    "::1",
  ],
  ...[
    " ",
    "\n",
    "\t",
    "a",
    "é",
    "\u{1f600}",
    "\ud800",
    "(?i)",
    "{1,9}",
    "^",
    "|",
    "\\p{L}",
    "[^",
    "99999999999999999999",
  ],
];

describe("parseExpression", () => {
  it("never throws, and reports every error at a position inside the text", () => {
    const garbage = fc.oneof(
      fc.array(fc.constantFrom(...pieces), { maxLength: 40 }).map((parts) => parts.join("")),
      fc.array(fc.constantFrom(...pieces), { maxLength: 40 }).map((parts) => parts.join(" ")),
      fc.string({ maxLength: 200, unit: "binary" }),
      fc.tuple(anyExpression, fc.nat(), fc.constantFrom(...pieces)).map(([text, at, piece]) => {
        const cut = at % (text.length + 1);
        return text.slice(0, cut) + piece + text.slice(cut + 1);
      }),
    );
    fc.assert(
      fc.property(garbage, (text) => {
        const result = parseExpression(text);
        if (result.ok) return;
        const { line, column, length, message, reason } = result.error;
        const lines = text.split("\n");
        expect(line).toBeLessThanOrEqual(lines.length);
        expect(column).toBeLessThanOrEqual(Buffer.byteLength(lines[line - 1]!) + 1);
        expect(length).toBeGreaterThanOrEqual(1);
        expect(message.endsWith(reason)).toBe(true);
      }),
      { numRuns: 3000 },
    );
  });

  it("parses the largest nested or backtracking texts quickly", () => {
    const texts = [
      "(",
      "not ",
      "!",
      "lower(",
      "any(",
      "cf(",
      "[",
      'http.host matches "((((',
      "a.",
      "ssl and (",
      "len(cf.",
    ];
    for (const text of texts) {
      expect(parseExpression(text.repeat(Math.floor(4096 / text.length))).ok).toBe(false);
    }
  });

  it("accepts expressions of up to 4096 bytes", () => {
    const text = 'http.host eq ""';
    const fill = (size: number): string => text.replace('""', `"${"é".repeat((size - text.length) / 2)}"`);
    expect(parseExpression(`${fill(4095)} `).ok).toBe(true);
    expect(parseExpression(fill(4097))).toMatchObject({
      ok: false,
      error: { reason: "expected at most 4096 bytes but received 4097" },
    });
  });

  it("rejects response fields in the request phase only", () => {
    const responseFields = [...fields.values()].filter(({ phase }) => phase === "response");
    expect(responseFields).toHaveLength(10);
    for (const { name } of responseFields) {
      const text = `any((len(${name}[*])[*] eq 1))`;
      expect(parseExpression(text).ok).toBe(false);
    }
    expect(parseExpression("http.response.code in {200..299}", { phase: "response" }).ok).toBe(true);
  });

  it("knows the fields and functions of the public registry", () => {
    expect(fields.size).toBe(179);
    expect([...functions.keys()].toSorted()).toMatchSnapshot();
  });

  it("formats errors like the public API", () => {
    const text = 'ssl and\nhttp.hots eq "a"';
    const result = parseExpression(text);
    if (result.ok) throw new Error("was accepted");
    expect(invalidExpressionMessage(text, result.error)).toBe(
      "'ssl and\nhttp.hots eq \"a\"' is not a valid value for expression because the expression is invalid: " +
        'Filter parsing error (2:1):\nhttp.hots eq "a"\n^^^^^^^^^ unknown identifier',
    );
    expect(result.error.suggestion).toBe("http.host");
  });

  it("suggests quotes for text without them", () => {
    const suggestionOf = (text: string): string | undefined => {
      const result = parseExpression(text);
      return result.ok ? undefined : result.error.suggestion;
    };
    expect(suggestionOf("http.host eq www.a.example and ssl")).toBe('"www.a.example"');
    expect(suggestionOf("http.request.uri.path contains /red")).toBe('"/red"');
    expect(suggestionOf("http.host in {a.example}")).toBe('"a.example"');
    expect(suggestionOf("http.host eq rome")).toBe('"rome"');
    expect(suggestionOf("http.host eq 'a b'")).toBe('"a b"');
    for (const text of ['r"a', 'www"x"', "lower(x)", "a/b#", "x".repeat(300)])
      expect(suggestionOf(`http.host eq ${text}`)).toBeUndefined();
  });
});
