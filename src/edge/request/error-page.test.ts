import { describe, expect, it } from "vitest";
import { AddressPolicy } from "../origin/address-policy.ts";
import { renderError } from "./error-page.ts";
import { originError, type VisitorError, visitorErrors } from "../http/errors.ts";
import { host, startEdge, startRawOrigin, requestEdge, type TestEdge } from "./test-edge.ts";
import { freePort } from "../../../test/helpers/free-port.ts";

const all = Object.entries(visitorErrors).map(
  ([name, make]) => [name, make("What was <b>wrong</b>.")] as [string, VisitorError],
);

describe.each(all)("the page of %s", (_name, error) => {
  it("is HTML without external resources or injected markup", () => {
    const { type, body } = renderError(error, "text/html,*/*", "0-DEV", `"><script>alert(1)</script>`);
    expect(type).toBe("text/html; charset=utf-8");
    expect(body).toContain(`error ${error.code} · ray 0-DEV`);
    expect(body).not.toMatch(/<script|<b>|<link|<img|src=|href=|url\(|@import/);
  });

  it("is JSON for clients that accept it", () => {
    const { type, body } = renderError(error, "application/json", "0-DEV", "x");
    expect(type).toBe("application/json");
    const { code, title, message } = error;
    expect(JSON.parse(body)).toEqual({ error: { code, title, message, ray: "0-DEV" } });
  });

  it("has a valid response status", () => {
    expect(error.status).toBeGreaterThanOrEqual(400);
    expect(error.status).toBeLessThan(600);
  });
});

it("no two visitor errors have the same code", () => {
  const codes = all.map(([, error]) => error.code);
  expect(new Set(codes).size).toBe(codes.length);
});

it.each([
  ["application/json", true],
  ["application/problem+json, */*", true],
  ["application/json, text/html", false],
  ["text/html", false],
  ["application/jsonp", false],
  ["*/*", false],
  ["application/json, text/plain, */*", true],
  ["text/html;q=0.5, application/json", true],
  ["application/json;q=0.4, text/html;q=0.5", false],
  ["application/json;q=0", false],
  ["application/json;q=x", false],
  ["", false],
])("accept: %s means JSON: %s", (accept, isJson) => {
  const { type } = renderError(visitorErrors.paused(), accept, "0-DEV", "x");
  expect(type.startsWith("application/json")).toBe(isJson);
});

it.each([
  ["ECONNREFUSED", 521],
  ["UND_ERR_CONNECT_TIMEOUT", 522],
  ["ETIMEDOUT", 522],
  ["EHOSTUNREACH", 523],
  ["ENETUNREACH", 523],
  ["EADDRNOTAVAIL", 523],
  ["UND_ERR_HEADERS_TIMEOUT", 524],
  ["UND_ERR_SOCKET", 520],
  ["HPE_INVALID_CONSTANT", 520],
  [undefined, 520],
])("a failure %s at the origin is a %i", (code, status) => {
  expect(originError(Object.assign(new Error("x"), { code }))).toMatchObject({ status, code: status });
  expect(originError(null).status).toBe(520);
});

const off = { isProxied: false, targets: [{ type: "A", content: "192.0.2.1" }] } as const;
const cname = (content: string) => ({ isProxied: true, targets: [{ type: "CNAME", content }] }) as const;
const cases: [name: keyof typeof visitorErrors, send: () => Promise<[TestEdge, Record<string, string>?]>][] =
  [
    ["badRequest", async () => [await startEdge({ originPort: 1 }), { host: "a b" }]],
    [
      "headersTooLarge",
      async () => [await startEdge({ originPort: 1, settings: { headerCountMax: 3 } }), { a: "1", b: "2" }],
    ],
    [
      "bodyTooLarge",
      async () => [
        await startEdge({ originPort: 1, settings: { bodyBytesMax: 1 } }),
        { "content-length": "2" },
      ],
    ],
    ["unknownHost", async () => [await startEdge({ originPort: 1 }), { host: "other.example" }]],
    ["directAddress", async () => [await startEdge({ originPort: 1 }), { host: "192.0.2.1:80" }]],
    ["directAddress", async () => [await startEdge({ originPort: 1 }), { host: "[2001:db8::1]" }]],
    ["paused", async () => [paused(await startEdge({ originPort: 1 }))]],
    ["unproxied", async () => [withHost(await startEdge({ originPort: 1 }), off)]],
    ["unknownHost", async () => [withHost(await startEdge({ originPort: 1 }), { ...off, targets: [] })]],
    ["noOrigin", async () => [withHost(await startEdge({ originPort: 1 }), cname("nowhere.invalid"))]],
    ["noOrigin", async () => [withHost(await startEdge({ originPort: 1 }), cname(host))]],
    ["privateOrigin", async () => [await startEdge({ originPort: 1, policy: new AddressPolicy("deny") })]],
    ["ownListener", async () => [await startEdge({ originPort: 8787, policy: forbidding(8787) })]],
    ["loop", async () => [await startEdge({ originPort: 1 }), { "cdn-loop": "selvedge" }]],
    ["originRefused", async () => [await startEdge({ originPort: await freePort() })]],
    [
      "originFirstByteTimeout",
      async () => [
        await startEdge({
          originPort: await startRawOrigin(() => {}),
          settings: { originFirstByteTimeoutMs: 50 },
        }),
      ],
    ],
    [
      "originFailed",
      async () => [
        await startEdge({ originPort: await startRawOrigin((socket) => socket.end("SSH-2.0-x\r\n")) }),
      ],
    ],
    [
      "internal",
      async () => [
        await startEdge({
          originPort: 1,
          rule: {
            matches: () => {
              throw new Error("secret");
            },
          },
        }),
      ],
    ],
  ];

function paused(edge: TestEdge): TestEdge {
  edge.zone.isPaused = true;
  return edge;
}
function withHost(edge: TestEdge, entry: Parameters<TestEdge["zone"]["setHost"]>[1]): TestEdge {
  edge.zone.setHost(host, entry);
  return edge;
}
function forbidding(port: number): AddressPolicy {
  const policy = new AddressPolicy("all");
  policy.forbidListener(port);
  return policy;
}

it.each(cases)("a visitor gets an error page for %s", async (name, send) => {
  const [{ port }, headers = {}] = await send();
  const expected = visitorErrors[name]("");
  const method = "content-length" in headers ? "POST" : "GET";
  const body = method === "POST" ? "xx" : undefined;
  const html = await requestEdge(port, { method, headers }, body);
  const json = await requestEdge(port, { method, headers: { ...headers, accept: "application/json" } }, body);
  for (const answer of [html, json]) {
    expect(answer.status).toBe(expected.status);
    expect(answer.headers).toMatchObject({ "cache-control": "no-store", server: "selvedge" });
    expect(answer.headers["cf-ray"]).toMatch(/^[0-9a-f]{16}-DEV$/);
    expect(answer.body).not.toContain("secret");
  }
  expect(html.body).toContain(`error ${expected.code} · ray ${String(html.headers["cf-ray"])}`);
  expect(JSON.parse(json.body)).toMatchObject({
    error: { code: expected.code, title: expected.title, ray: json.headers["cf-ray"] },
  });
});

it("the response to a HEAD has the page's length and no body", async () => {
  const { port } = await startEdge({ originPort: 1 });
  const answer = await requestEdge(port, { method: "HEAD", headers: { host: "other.example" } });
  expect([answer.status, answer.body]).toEqual([404, ""]);
  expect(Number(answer.headers["content-length"])).toBeGreaterThan(100);
});
