import { describe, expect, it } from "vitest";
import type { VisitorError } from "./errors.ts";
import { originHeaders, visitorHeaders } from "./headers.ts";

const common = {
  host: "www.example.com",
  clientAddress: "198.51.100.7",
  scheme: "http",
  ray: "0-DEV",
} as const;
const toOrigin = (...rawHeaders: string[]): string[] => originHeaders({ ...common, rawHeaders });

/** The edge's own headers to an origin, in order. */
const edgeSays = (cdnLoop = "selvedge", forwardedFor = "198.51.100.7"): string[] => [
  "x-forwarded-for",
  forwardedFor,
  "x-forwarded-proto",
  "http",
  "cf-connecting-ip",
  "198.51.100.7",
  "cf-ray",
  "0-DEV",
  "cf-visitor",
  '{"scheme":"http"}',
  "cdn-loop",
  cdnLoop,
];

describe("to the origin", () => {
  it("goes the visitor's request, followed by the edge's own headers", () => {
    const sent = ["Accept", "*/*", "X-Odd-CASE", "\xe9", "Cookie", "a=1", "Cookie", "b=2"];
    expect(toOrigin("Host", "ignored.example", ...sent)).toEqual([
      "host",
      common.host,
      ...sent,
      ...edgeSays(),
    ]);
  });

  it.each([
    "CF-Connecting-IP",
    "cf-connecting-ipv6",
    "CF-IPCountry",
    "CF-Ray",
    "CF-Visitor",
    "CF-Worker",
    "True-Client-IP",
    "X-Forwarded-Proto",
  ])("%s of a visitor is dropped", (name) => {
    expect(toOrigin(name, "forged", name.toLowerCase(), "again")).toEqual([
      "host",
      common.host,
      ...edgeSays(),
    ]);
  });

  it.each([
    "Connection",
    "Keep-Alive",
    "Proxy-Authenticate",
    "Proxy-Authorization",
    "Proxy-Connection",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    "Expect",
  ])("%s stays between the visitor and the edge", (name) => {
    expect(toOrigin(name, "x", "X-A", "b")).toEqual(["host", common.host, "X-A", "b", ...edgeSays()]);
  });

  it("a header named in Connection is dropped too, in any spelling", () => {
    const sent = toOrigin(
      "Connection",
      "close, X-A ,, x-B",
      "x-a",
      "1",
      "X-B",
      "2",
      "CONNECTION",
      "X-C",
      "X-C",
      "3",
      "X-D",
      "4",
    );
    expect(sent).toEqual(["host", common.host, "X-D", "4", ...edgeSays()]);
  });

  it("Connection cannot remove the body's length or headers that the edge relies on", () => {
    const named = "content-length, host, x-forwarded-for, cdn-loop, cf-ray, cf-connecting-ip, cf-visitor";
    expect(
      toOrigin(
        "Connection",
        named,
        "Content-Length",
        "3",
        "X-Forwarded-For",
        "192.0.2.1",
        "CDN-Loop",
        "other",
      ),
    ).toEqual([
      "host",
      common.host,
      "Content-Length",
      "3",
      ...edgeSays("other, selvedge", "192.0.2.1, 198.51.100.7"),
    ]);
  });

  it("X-Forwarded-For and CDN-Loop are appended to, over any number of lines", () => {
    expect(
      toOrigin(
        "X-Forwarded-For",
        "192.0.2.1, 192.0.2.2",
        "cdn-loop",
        "a; v=1",
        "x-forwarded-for",
        "192.0.2.3",
        "CDN-Loop",
        "b",
      ),
    ).toEqual([
      "host",
      common.host,
      ...edgeSays("a; v=1, b, selvedge", "192.0.2.1, 192.0.2.2, 192.0.2.3, 198.51.100.7"),
    ]);
  });

  it("sets https when the visitor's connection uses TLS", () => {
    const headers = originHeaders({ ...common, scheme: "https", rawHeaders: [] });
    expect(headers).toContain('{"scheme":"https"}');
    expect(headers[headers.indexOf("x-forwarded-proto") + 1]).toBe("https");
  });

  it.each([
    ["selvedge", true],
    ["SELVEDGE", true],
    ["other, selvedge", true],
    ["selvedge; v=1; loops=3", true],
    ["other;by=selvedge", false],
    ["selvedge2", false],
    ["notselvedge", false],
    ["", false],
  ])("cdn-loop: %s is a loop: %s", (value, isLoop) => {
    const send = (): string[] => toOrigin("CDN-Loop", value);
    if (isLoop) expect(send).toThrow(expect.objectContaining({ code: 1019 }) as VisitorError);
    else expect(send).not.toThrow();
  });
});

describe("to the visitor", () => {
  it("goes the origin's response with all header lines, and the edge's ray", () => {
    const sent = [
      "Content-Length",
      "2",
      "Set-Cookie",
      "a=1",
      "set-cookie",
      "b=2",
      "Server",
      "origin",
      "X-A",
      "\xe9",
    ];
    expect(visitorHeaders(sent, "0-DEV")).toEqual([...sent, "cf-ray", "0-DEV"]);
  });

  it("go no hop-by-hop headers of the origin", () => {
    const hop = [
      "Connection",
      "X-A, keep-alive",
      "Keep-Alive",
      "timeout=5",
      "Transfer-Encoding",
      "chunked",
      "X-A",
      "1",
    ];
    const more = ["Upgrade", "h2c", "Trailer", "x-sum", "Proxy-Authenticate", "Basic", "CF-Ray", "forged"];
    expect(visitorHeaders([...hop, ...more, "X-B", "2"], "0-DEV")).toEqual(["X-B", "2", "cf-ray", "0-DEV"]);
  });

  it("Connection cannot remove the length of the response", () => {
    const sent = ["Connection", "content-length", "Content-Length", "2"];
    expect(visitorHeaders(sent, "0-DEV")).toEqual(["Content-Length", "2", "cf-ray", "0-DEV"]);
  });

  it("a 204 has no length", () => {
    const raw = ["Content-Length", "5", "X-A", "b"];
    expect(visitorHeaders(raw, "0-DEV", 204)).toEqual(["X-A", "b", "cf-ray", "0-DEV"]);
    expect(visitorHeaders(raw, "0-DEV", 304)).toContain("Content-Length");
  });
});
