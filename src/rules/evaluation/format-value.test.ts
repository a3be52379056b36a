import { expect, it } from "vitest";
import { formatValue } from "../language.ts";

it("formats only the beginning of a large value", () => {
  const large = "x".repeat(1_000_000);
  const many = Array.from({ length: 1000 }, () => large);
  expect(formatValue(large, "Bytes", 10).length).toBeLessThan(100);
  expect(formatValue(many, "Array(Bytes)", 10).length).toBeLessThan(100);
  expect(formatValue(new Map(many.map((each, i) => [`${i}`, each])), "Map(Bytes)", 10).length).toBeLessThan(
    100,
  );
  expect(formatValue(["a", "b"], "Array(Bytes)", 10)).toBe('["a", "b"]');
  expect(formatValue(new Map([["a", [1, 2]]]), "Map(Array(Int))")).toBe('{"a": [1, 2]}');
});
