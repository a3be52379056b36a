import { fc } from "../../../test/helpers/properties.ts";
import { expect, it } from "vitest";
import { parseBounded } from "./bounded-json.ts";

/** Longer than texts that are parsed without a check. */
const padding = " ".repeat(2000);
const deep = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);

it("parses the same texts as JSON.parse", () => {
  fc.assert(
    fc.property(fc.json({ stringUnit: "binary" }), (text) => {
      expect(parseBounded(text + padding)).toEqual(JSON.parse(text));
    }),
  );
});

it("rejects the same texts as JSON.parse", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom("[", "]", "{", "}", '"', ",", "\\", ":", "1", " ", "a")),
      (characters) => {
        const text = characters.join("") + padding;
        const parsed = (parse: (text: string) => unknown): unknown => {
          try {
            return parse(text);
          } catch (error) {
            return (error as Error).name;
          }
        };
        expect(parsed(parseBounded)).toEqual(parsed(JSON.parse));
      },
    ),
  );
});

it("accepts up to 500 levels, however they are mixed with strings", () => {
  expect(JSON.stringify({ value: parseBounded(deep(500) + padding) })).toContain(deep(500));
  for (const text of [deep(501) + padding, `["\\\\",${deep(500)}]`, `{"a\\"":${deep(500)}${padding}}`])
    expect(() => parseBounded(text)).toThrow("nested more than 500 deep");
  expect(parseBounded(JSON.stringify(deep(10_000)))).toBe(deep(10_000));
});

it("accepts up to 100,000 values", () => {
  const list = (count: number): string => JSON.stringify(Array.from({ length: count }, () => ",[1,2]"));
  expect(parseBounded(list(100_000))).toHaveLength(100_000);
  expect(() => parseBounded(list(100_001))).toThrow("more than 100000 values");
});
