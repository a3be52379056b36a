import { describe, expect, it } from "vitest";
import {
  fields,
  parseIp,
  requestFields,
  type RequestDescription,
  type Type,
  type Value,
} from "../language.ts";
import { readRequest } from "./read-request.ts";

const plain: RequestDescription = {
  method: "GET",
  url: "/a/b.tar.GZ?x=1&x=2&y&&=z",
  headers: ["Host", "Example.COM:8443", "Cookie", "a=1", "cookie", "b%41=2;c"],
  tls: true,
  ip: "::ffff:192.0.2.7",
  httpVersion: "HTTP/1.1",
};

function hasType(value: Value | undefined, type: Type): boolean {
  if (type === "Bool") return typeof value === "boolean";
  if (type === "Bytes") return typeof value === "string" && !/[^\0-\xff]/.test(value);
  if (type === "Int") return typeof value === "number";
  if (type === "Ip") return value === undefined || typeof value === "number" || typeof value === "string";
  if (type.startsWith("Map(")) {
    return (
      value instanceof Map &&
      [...value.values()].every((item: Value) => hasType(item, type.slice(4, -1) as Type))
    );
  }
  return Array.isArray(value) && value.every((item: Value) => hasType(item, type.slice(6, -1) as Type));
}

describe("requestFields", () => {
  it.each([...fields.values()])("has $name, of type $type", ({ name, type }) => {
    expect(hasType(requestFields(plain)[name], type)).toBe(true);
  });

  it("splits a request into fields", () => {
    const values = requestFields(plain);
    expect(values["http.host"]).toBe("example.com");
    expect(values["http.request.full_uri"]).toBe("https://example.com/a/b.tar.GZ?x=1&x=2&y&&=z");
    expect(values["http.request.uri.path.extension"]).toBe("gz");
    expect(values["http.request.uri.args"]).toEqual(
      new Map([
        ["x", ["1", "2"]],
        ["y", [""]],
        ["", ["z"]],
      ]),
    );
    expect(values["http.request.uri.args.names"]).toEqual(["x", "x", "y", ""]);
    expect(values["http.request.uri.args.values"]).toEqual(["1", "2", "", "z"]);
    expect(values["http.cookie"]).toBe("a=1; b%41=2;c");
    expect(values["http.request.cookies"]).toEqual(
      new Map([
        ["a", ["1"]],
        ["bA", ["2"]],
      ]),
    );
    expect(values["http.request.headers"]).toEqual(
      new Map([
        ["host", ["Example.COM:8443"]],
        ["cookie", ["a=1", "b%41=2;c"]],
      ]),
    );
    expect(values["http.request.headers.names"]).toEqual(["Host", "Cookie", "cookie"]);
    expect(values["ip.src"]).toBe(parseIp("192.0.2.7"));
    expect(values["raw.http.request.uri.query"]).toBe("x=1&x=2&y&&=z");
  });

  it("keeps every byte, and the order of repeated form arguments", () => {
    const values = requestFields({
      ...plain,
      headers: ["cookie", "a=\xc3\xa0; b=\xc2\xa0", "content-type", "application/x-www-form-urlencoded"],
      body: { raw: "a=1&b=2&a=3", size: 11, truncated: false },
    });
    expect(values["http.request.cookies"]).toEqual(
      new Map([
        ["a", ["\xc3\xa0"]],
        ["b", ["\xc2\xa0"]],
      ]),
    );
    expect(values["http.request.body.form.names"]).toEqual(["a", "b", "a"]);
    expect(values["http.request.body.form.values"]).toEqual(["1", "2", "3"]);
  });

  it("accepts absolute URLs, and paths with a colon", () => {
    const pathOf = (url: string): unknown => requestFields({ ...plain, url })["http.request.uri.path"];
    expect(pathOf("http://example.com/x?y")).toBe("/x");
    expect(pathOf("http://example.com")).toBe("/");
    expect(pathOf("/redirect/http://a/b")).toBe("/redirect/http://a/b");
    expect(pathOf("*")).toBe("*");
  });

  it("reads cf, and lets given fields override it", () => {
    const cf = {
      country: "DE",
      asn: "3320",
      isEUCountry: "1",
      botManagement: { score: 3 },
      tlsClientAuth: { certVerified: "SUCCESS" },
    };
    const values = requestFields({ ...plain, cf });
    expect(values["ip.src.country"]).toBe("DE");
    expect(values["ip.src.asnum"]).toBe(3320);
    expect(values["ip.src.is_in_european_union"]).toBe(true);
    expect(values["cf.bot_management.score"]).toBe(3);
    expect(values["cf.tls_client_auth.cert_verified"]).toBe(true);
    expect(requestFields({ ...plain, cf, botScore: 50 })["cf.bot_management.score"]).toBe(50);
    const given = requestFields({ ...plain, cf, fields: { "ip.src.country": "T1", "http.host": "x" } });
    expect([given["ip.src.country"], given["http.host"]]).toEqual(["T1", "x"]);
  });

  it("treats null and invalid values in cf as unknown", () => {
    const values = requestFields({
      ...plain,
      cf: { country: null, asn: "x", city: {}, botManagement: null },
    });
    expect([values["ip.src.country"], values["ip.src.asnum"], values["ip.src.city"]]).toEqual(["XX", 0, ""]);
    expect(values["cf.bot_management.score"]).toBe(99);
  });
});

describe("readRequest", () => {
  it("reads HTTP text", () => {
    const request = readRequest("POST /x?y HTTP/2\r\nHost: a\r\nX-A:  b \r\n\r\nbody", "192.0.2.9");
    expect(request).toMatchObject({
      method: "POST",
      url: "/x?y",
      httpVersion: "HTTP/2",
      ip: "192.0.2.9",
      tls: true,
    });
    expect(request.headers).toEqual(["Host", "a", "X-A", "b"]);
    expect(request.body).toEqual({ raw: "body", size: 4, truncated: false });
  });

  it("reads JSON", () => {
    const text = JSON.stringify({
      url: "https://é.example/ü",
      headers: { Accept: ["a", "b"], "X-A": "ü" },
      cf: { country: "DE" },
    });
    const request = readRequest(Buffer.from(text, "utf8").toString("latin1"));
    expect(request.headers).toEqual(["Accept", "a", "Accept", "b", "X-A", "\xc3\xbc"]);
    expect(request.host).toBe("xn--9ca.example");
    expect(requestFields(request)["http.request.uri"]).toBe("/\xc3\xbc");
  });

  it.each([
    ["hello", 'Expected a request line like "GET /path HTTP/1.1" but received "hello"'],
    ["GET / HTTP/1.1\nbroken", 'Expected a header like "name: value" but received "broken"'],
    ["{}", "Expected a string for url but received undefined"],
    ['{"url":"/","headers":{"a":1}}', "Expected strings for headers but received 1"],
  ])("explains the error in %j", (source, message) => {
    expect(() => readRequest(source)).toThrow(message);
  });
});
