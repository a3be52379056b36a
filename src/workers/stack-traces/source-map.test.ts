import { expect, it } from "vitest";
import { originalPosition, readSourceMap, segmentsMax } from "./source-map.ts";

const map = (more: object): string =>
  JSON.stringify({ version: 3, sources: ["src/index.ts"], names: [], mappings: "AAAA;AACA,IAAI", ...more });
const at = (text: string, line: number, column: number): unknown => {
  const read = readSourceMap(text);
  return read && originalPosition(read, { file: "index.js", line, column });
};

it("finds the original position", () => {
  expect(at(map({}), 1, 1)).toEqual({ file: "src/index.ts", line: 1, column: 1 });
  expect(at(map({}), 2, 9)).toEqual({ file: "src/index.ts", line: 2, column: 5 });
  expect(at(map({ sourceRoot: "root" }), 2, 1)).toEqual({ file: "root/src/index.ts", line: 2, column: 1 });
});

it.each([
  ["nothing", ""],
  ["no JSON", "{"],
  ["no object", "null"],
  ["a list", "[]"],
  ["another version", map({ version: 2 })],
  ["sections, which may be nested", JSON.stringify({ version: 3, sections: [{}] })],
  ["sources that are not texts", map({ sources: [{ toString: 1 }] })],
  ["no mappings", map({ mappings: [[[0, 0, 0, 0]]] })],
  ["more segments than are read", map({ mappings: ",".repeat(segmentsMax) })],
  ["very deep JSON", `{"x":${"[".repeat(1e6)}${"]".repeat(1e6)}}`],
  ["very many sources", map({ sources: Array.from({ length: 200_000 }, () => "x") })],
])("does not read %s", (_what, text) => {
  expect(readSourceMap(text)).toBeUndefined();
});

it.each([
  ["a missing source", map({ sources: [] })],
  ["no source", map({ sources: [null] })],
  ["an unterminated number", map({ mappings: "g".repeat(100_000) })],
  ["lines below the first", map({ mappings: "AADA" })],
])("finds no position with %s", (_what, text) => {
  expect(at(text, 1, 1)).toBeUndefined();
});

it("mappings that are not valid VLQ do not throw", () => {
  expect(() => at(map({ mappings: "\u0000\u00ff,€€€€,====;" }), 1, 1)).not.toThrow();
});

it("a source's name has no line breaks, and a limited length", () => {
  const { file } = at(map({ sources: [`a\n    at evil (x:1:1)\u2028${"y".repeat(1e5)}\ud800`] }), 1, 1) as {
    file: string;
  };
  expect(file).toMatch(/^a {4}at evil/);
  expect(file.length).toBe(1024);
  expect(file.isWellFormed()).toBe(true);
});
