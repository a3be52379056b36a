import { expect, it } from "vitest";
import { randomText } from "./ids.ts";

it("randomText gives each caller bytes of its own, also where the pool is filled again", () => {
  const texts = Array.from({ length: 2000 }, (_, i) =>
    randomText(8 + (i % 9), i % 2 === 0 ? "hex" : "base64url"),
  );
  expect(new Set(texts.map((text) => text.slice(0, 10))).size).toBe(texts.length);
  expect(randomText(8, "hex")).toMatch(/^[0-9a-f]{16}$/);
  expect(randomText(16, "base64url")).toMatch(/^[\w-]{22}$/);
});
