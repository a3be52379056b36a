import { describe, expect, it } from "vitest";
import { isWithin, parsePattern, RouteTable, type RoutePattern } from "./route-table.ts";

const table = (...patterns: string[]): RouteTable<string> =>
  new RouteTable(patterns.map((text) => ({ pattern: parsePattern(text) as RoutePattern, route: text })));

describe("patterns of routes", () => {
  it.each([
    ["example.com", "example.com", "/", true],
    ["example.com", "example.com", "/x", false],
    ["example.com/*", "example.com", "/x?y", true],
    ["example.com/*", "www.example.com", "/", false],
    ["*example.com/*", "example.com", "/", true],
    ["*example.com/*", "www.example.com", "/", true],
    ["*.example.com/*", "example.com", "/", false],
    ["*.example.com/*", "a.b.example.com", "/", true],
    ["example.com/a*", "example.com", "/abc", true],
    ["example.com/a", "example.com", "/a?q", false],
    ["EXAMPLE.com/A", "example.com", "/A", true],
    ["EXAMPLE.com/A", "example.com", "/a", false],
    ["https://example.com/*", "example.com", "/", false],
    ["http://example.com/*", "example.com", "/", true],
  ])("%s takes http://%s%s: %s", (pattern, host, path, takes) => {
    expect(table(pattern).match("http", host, path) !== undefined).toBe(takes);
  });

  it("are tried from the most specific to the least", () => {
    const routes = table(
      "*example.com/*",
      "*.example.com/*",
      "www.example.com/*",
      "www.example.com/api/*",
      "www.example.com/api/one",
      "*.www.example.com/*",
      "https://www.example.com/*",
    );
    const match = (host: string, path: string, scheme: "http" | "https" = "http") =>
      routes.match(scheme, host, path);
    expect([
      match("example.com", "/"),
      match("a.example.com", "/"),
      match("www.example.com", "/"),
      match("www.example.com", "/", "https"),
      match("www.example.com", "/api/two"),
      match("www.example.com", "/api/one"),
      match("a.www.example.com", "/"),
      match("elsewhere.example", "/"),
    ]).toEqual([
      "*example.com/*",
      "*.example.com/*",
      "www.example.com/*",
      "https://www.example.com/*",
      "www.example.com/api/*",
      "www.example.com/api/one",
      "*.www.example.com/*",
      undefined,
    ]);
  });

  it.each([
    ["exa mple.com/", "without a query, a fragment and spaces"],
    ["example.com/?q", "without a query"],
    ["example.com/#f", "without a query"],
    ["a*.example.com/", "may begin with *"],
    ["/path", "a host name"],
    ["example.com/a*b", "a * in the path only at its end"],
    ["example.com/**", "a * in the path only at its end"],
  ])("refuses %s", (text, why) => {
    expect(parsePattern(text)).toContain(why);
  });

  it("belong to a zone if all hosts that they match do", () => {
    const within = (text: string): boolean => isWithin(parsePattern(text) as RoutePattern, "example.com");
    expect(["example.com/*", "*.example.com/*", "*example.com/*", "a.example.com/"].every(within)).toBe(true);
    expect(["notexample.com/*", "*ple.com/*", "com/*"].some(within)).toBe(false);
    expect(parsePattern("*/*")).toContain("a host name");
  });
});
