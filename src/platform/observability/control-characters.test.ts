import { expect, it } from "vitest";
import { escapeControls } from "./control-characters.ts";

it.each([
  ["an escape sequence", "\u001b[2J", "\\u001b[2J"],
  ["a control of eight bits", "\u009b31m", "\\u009b31m"],
  ["a carriage return, and a deletion", "a\rb\u007f", "a\\u000db\\u007f"],
  ["characters that change the direction", "\u202egnp\u2069", "\\u202egnp\\u2069"],
  ["a separator of lines", "a\u2028b", "a\\u2028b"],
  ["a tag that cannot be seen", "a\u{e0041}", "a\\udb40\\udc41"],
])("%s is shown", (_, text, shown) => {
  expect(escapeControls(text)).toBe(shown);
});

it("JSON keeps its meaning, and other text stays as it is", () => {
  const value = { name: "\u001b\u009b\u202e\u{e0041}\n\u2028", text: "Grüße, 日本, 🎉" };
  const text = escapeControls(JSON.stringify(value, null, 2));
  expect(text).not.toMatch(/[^\P{C}\n]/u);
  expect(JSON.parse(text)).toEqual(value);
  expect(escapeControls("a\n\tGrüße, 日本, 🎉")).toBe("a\n\tGrüße, 日本, 🎉");
});
