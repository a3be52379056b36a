import { fc } from "../../../../test/helpers/properties.ts";
import { expect, it } from "vitest";
import { compilePattern, fillPlaceholders } from "./path-pattern.ts";

const match = (pattern: string, path: string, host = ""): Record<string, string> | undefined =>
  compilePattern(pattern)!.match(host, path);

it.each<[string, string, Record<string, string> | undefined]>([
  ["/a", "/a", {}],
  ["/a", "/a/", undefined],
  ["/:x", "/abc", { x: "abc" }],
  ["/:x", "/", undefined],
  ["/:x", "/a/b", undefined],
  ["/:y-:m/p", "/2026-11-21/p", { y: "2026-11", m: "21" }],
  ["/:a:b", "/xyz", { a: "xy", b: "z" }],
  ["/blog/*", "/blog/", { splat: "" }],
  ["/blog/*", "/blog/a/b", { splat: "a/b" }],
  ["/*/end", "/a/b/end", { splat: "a/b" }],
  ["/*.png", "/x/y.png", { splat: "x/y" }],
  ["/ab*ba", "/aba", undefined],
  ["/ab*ba", "/abba", { splat: "" }],
  ["/:a-*-:b/c", "/1-2-3-4/c", { a: "1-2", splat: "3", b: "4" }],
])("%s on %s", (pattern, path, expected) => expect(match(pattern, path)).toEqual(expected));

it("hosts have parts between dots", () => {
  const pattern = "https://:sub.example.com/:page";
  expect(match(pattern, "/x", "a.example.com")).toEqual({ sub: "a", page: "x" });
  expect(match(pattern, "/x", "a.b.example.com")).toBeUndefined();
  expect(match("https://*.example.com/x", "/x", "a.b.example.com")).toEqual({ splat: "a.b" });
});

it("refuses two placeholders with one name, and fills in only known ones", () => {
  for (const twice of ["/:a/:a", "/*/*", "/*/:splat", "https://*.com/*"])
    expect(compilePattern(twice)).toBeUndefined();
  expect(fillPlaceholders("/:x/:constructor", { x: "1" })).toBe("/1/:constructor");
});

it("equals the corresponding regular expression", () => {
  const part = fc.constantFrom("a", "b", "-", "/", ":x", ":y", ":z", "*");
  const source = fc.array(part, { maxLength: 8 }).map((parts) => `/${parts.join("")}`);
  const path = fc
    .array(fc.constantFrom("a", "b", "-", "/"), { maxLength: 12 })
    .map((each) => `/${each.join("")}`);
  fc.assert(
    fc.property(source, path, (text, asked) => {
      const pattern = compilePattern(text);
      if (pattern === undefined) return;
      const names: string[] = [];
      const expression = text.replace(/\*|:([A-Za-z]\w*)/g, (found, name: string | undefined) => {
        names.push(name ?? "splat");
        return found === "*" ? "(.*)" : "([^/]+)";
      });
      const found = new RegExp(`^${expression}$`).exec(asked);
      const expected =
        found === null ? undefined : Object.fromEntries(names.map((name, i) => [name, found[i + 1]]));
      expect(pattern.match("", asked)).toEqual(expected);
    }),
    { numRuns: 20_000 },
  );
});

it("matches the worst patterns in linear time", () => {
  // A backtracking engine would not finish, and a simple search would take ten million steps for each.
  const [half, path] = ["-".repeat(900), `/${"-".repeat(16_000)}`];
  for (const worst of [`/:x${half}b${half}:y`, `/*b${half}`, `/:x:w${half}b-:z`, `/:x${half}b*`])
    for (let i = 0; i < 100; i++) expect(match(worst, path)).toBeUndefined();
});
