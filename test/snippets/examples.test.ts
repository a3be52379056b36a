import { createHmac } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeGeoFiles } from "../helpers/geo.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import {
  askWhole,
  createZone,
  example,
  listenLocally,
  type ExampleRequest,
  type LocalServer,
  type SnippetInUse,
} from "./example-platform.ts";

/** The request as the origin received it; the origin responds with it. */
interface Seen {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

interface Case {
  what: string;
  /** Examples in the order of their rules. */
  snippets: readonly string[];
  request?: ExampleRequest;
  status?: number;
  headers?: Record<string, unknown>;
  /** Headers that the response must not have. */
  without?: readonly string[];
  body?: unknown;
  json?: unknown;
  /** The request at the origin; null when none may arrive. */
  origin?: unknown;
}

const inGermany = { "x-forwarded-for": "192.0.2.1" };
const inTexas = { "x-forwarded-for": "198.51.100.1" };
const subrequestsMax = 5; // limit of the enterprise plan, which new zones have

const cases: readonly Case[] = [
  {
    what: "a known visitor gets the same variant",
    snippets: ["ab-test"],
    request: { path: "/page?x=1", headers: { cookie: "theme=dark; variant=b" } },
    without: ["set-cookie"],
    origin: { url: "/b/page?x=1" },
  },
  {
    what: "a new visitor gets a variant to keep",
    snippets: ["ab-test"],
    request: { path: "/page" },
    headers: { "set-cookie": [expect.stringMatching(/^variant=[ab]; Path=\/; Max-Age=86400$/)] },
    origin: { url: expect.stringMatching(/^\/[ab]\/page$/) },
  },
  {
    what: "a preflight of the other site is answered at the edge",
    snippets: ["cors"],
    request: {
      method: "OPTIONS",
      headers: { origin: "https://app.example", "access-control-request-method": "POST" },
    },
    status: 204,
    headers: {
      "access-control-allow-origin": "https://app.example",
      "access-control-allow-methods": "GET, POST, OPTIONS",
    },
    body: "",
    origin: null,
  },
  {
    what: "a preflight of a stranger is refused",
    snippets: ["cors"],
    request: {
      method: "OPTIONS",
      headers: { origin: "https://evil.example", "access-control-request-method": "POST" },
    },
    status: 403,
    without: ["access-control-allow-origin"],
    origin: null,
  },
  {
    what: "the other site's call goes on, with its body",
    snippets: ["cors"],
    request: { method: "POST", headers: { origin: "https://app.example" }, body: "a=1" },
    headers: { "access-control-allow-origin": "https://app.example", vary: "origin" },
    origin: { method: "POST", body: "a=1" },
  },
  {
    what: "headers are added and removed",
    snippets: ["security-headers"],
    headers: {
      "content-security-policy": "default-src 'self'",
      "strict-transport-security": "max-age=31536000",
      "x-content-type-options": "nosniff",
      "referrer-policy": "same-origin",
    },
    without: ["x-powered-by"],
    origin: { method: "GET" },
  },
  {
    what: "a visitor from Germany is sent to the German pages",
    snippets: ["geo-redirect"],
    request: { path: "/shop?q=1", headers: inGermany },
    status: 302,
    headers: { location: expect.stringMatching(/^http:\/\/[^/]+\/de\/shop\?q=1$/) },
    origin: null,
  },
  {
    what: "a visitor on the right site is passed on",
    snippets: ["geo-redirect"],
    request: { path: "/us/shop", headers: inTexas },
    origin: { url: "/us/shop" },
  },
  {
    what: "a visitor without a country is passed on",
    snippets: ["geo-redirect"],
    request: { path: "/shop", headers: { "x-forwarded-for": "100.64.0.1" } },
    origin: { url: "/shop" },
  },
  {
    what: "all visitors see the maintenance page",
    snippets: ["maintenance"],
    status: 503,
    headers: { "retry-after": "3600", "content-type": "text/html; charset=utf-8" },
    body: expect.stringContaining("Back soon"),
    origin: null,
  },
  {
    what: "HEAD gets no body of the page",
    snippets: ["maintenance"],
    request: { method: "HEAD" },
    status: 503,
    body: "",
    origin: null,
  },
  {
    what: "visitors with the secret pass the maintenance page",
    snippets: ["maintenance"],
    request: { headers: { "x-bypass": "open sesame" } },
    origin: { method: "GET" },
  },
  {
    what: "an API adds up a query",
    snippets: ["json-api"],
    request: { path: "/api/sum?n=1&n=2&n=39" },
    json: { sum: 42 },
    headers: { "content-type": expect.stringMatching(/^application\/json/) },
    origin: null,
  },
  {
    what: "an API adds up a body",
    snippets: ["json-api"],
    request: { method: "POST", path: "/api/sum", body: '{"numbers":[1,2,3]}' },
    json: { sum: 6 },
    origin: null,
  },
  {
    what: "an API refuses bodies that are not JSON",
    snippets: ["json-api"],
    request: { method: "POST", path: "/api/sum", body: "{" },
    status: 400,
    json: { error: "expected JSON with numbers" },
    origin: null,
  },
  {
    what: "an API knows its paths",
    snippets: ["json-api"],
    request: { path: "/api" },
    status: 404,
    json: { error: "not found" },
    origin: null,
  },
  {
    what: "two snippets see the request in order, and the response in reverse order",
    snippets: ["row-first", "row-second"],
    headers: { "x-answered-by": "second, first" },
    origin: { url: "/?seen=first", headers: expect.objectContaining({ "x-seen-by": "first, second" }) },
  },
  {
    what: "the order is that of the rules",
    snippets: ["row-second", "row-first"],
    headers: { "x-answered-by": "first, second" },
    origin: { url: "/?seen=nobody", headers: expect.objectContaining({ "x-seen-by": "second, first" }) },
  },
  {
    what: "the second of three responds; the third and the origin get no request",
    snippets: ["row-first", "row-second", "maintenance"],
    request: { path: "/direct" },
    body: "from the second",
    headers: { "x-answered-by": "first" },
    origin: null,
  },
  {
    what: "three services are asked at once",
    snippets: ["fan-out"],
    json: { prices: { part: "prices" }, stock: { part: "stock" }, reviews: { part: "reviews" } },
    origin: null,
  },
  {
    what: "fetches are counted, and exceeding the limit can be caught",
    snippets: ["too-many-fetches"],
    request: { path: "/?fetch=/part" },
    json: { statuses: Array.from({ length: subrequestsMax }, () => 200), error: true },
    origin: null,
  },
  {
    what: "each hop of a redirect is counted",
    snippets: ["too-many-fetches"],
    request: { path: "/?fetch=/redirect" },
    json: { statuses: Array.from({ length: Math.floor(subrequestsMax / 2) }, () => 200), error: true },
    origin: null,
  },
  ...(
    [
      ["/origin-twice", 1201, "going on to the origin twice"],
      ["/fetches", 1202, "an uncaught fetch above the limit"],
      ["/spin", 1203, "a loop without end"],
      ["/objects", 1204, "hoarding objects"],
      ["/buffers", 1204, "hoarding buffers"],
      ["/throw", 1206, "an exception"],
      ["/nothing", 1206, "a result that is not a response"],
    ] as const
  ).map(([path, code, what]): Case => ({
    what: `${what} is error ${code}`,
    snippets: ["uncaught"],
    request: { path, headers: { accept: "application/json" } },
    status: 500,
    json: { error: expect.objectContaining({ code }) },
  })),
  {
    what: "a snippet that may fail works without a cause",
    snippets: ["uncaught"],
    request: { path: "/fine" },
    origin: { url: "/fine" },
  },
  {
    what: "unavailable globals are undefined",
    snippets: ["environment"],
    json: {
      types: expect.toSatisfy((types: object) => Object.values(types).every((type) => type === "undefined")),
      inherited: [],
      eval: "EvalError",
      function: "EvalError",
      node: "ReferenceError",
      upgrade: expect.stringMatching(/Error$/),
      more: [],
      available: true,
      subtle: "function",
      uuid: true,
    },
    origin: null,
  },
  {
    what: "a request has all its properties",
    snippets: ["request-object"],
    request: {
      method: "PUT",
      path: "/a%20b?c=d",
      headers: { "x-drop": "1", ...inGermany },
      body: "some text",
    },
    json: {
      method: "PUT",
      url: expect.stringMatching(/^http:\/\/example-\d+\.example\/a%20b\?c=d$/),
      redirect: "manual",
      host: expect.stringMatching(/^example-\d+\.example$/),
      header: "1",
      has: [false, true],
      set: "1, 2",
      cookies: ["a=1", "b=2"],
      hasBody: true,
      body: "some text",
      isImmutable: true,
      cf: expect.objectContaining({
        country: "DE",
        city: "Berlin",
        continent: "EU",
        region: "Land Berlin",
        regionCode: "BE",
        postalCode: "10115",
        latitude: "52.50000",
        longitude: "13.40000",
        timezone: "Europe/Berlin",
        asn: 64_496,
        asOrganization: "Example Net",
        colo: "DEV",
        httpProtocol: "HTTP/1.1",
        tlsVersion: "",
        tlsCipher: "",
        requestPriority: "",
      }),
    },
    origin: null,
  },
  {
    what: "a response of JSON",
    snippets: ["response-object"],
    request: { path: "/json" },
    status: 201,
    headers: { "x-a": "1" },
    json: { made: true },
    origin: null,
  },
  ...[301, 302].map((status): Case => ({
    what: `a redirect with ${status}`,
    snippets: ["response-object"],
    request: { path: `/${status}` },
    status,
    headers: { location: expect.stringMatching(/^http:\/\/[^/]+\/(moved|found)$/) },
    origin: null,
  })),
  {
    what: "a response of text",
    snippets: ["response-object"],
    request: { path: "/text" },
    status: 202,
    body: "text",
    origin: null,
  },
  {
    what: "the origin's response, changed",
    snippets: ["response-object"],
    request: { path: "/missing" },
    status: 404,
    headers: {
      "x-properties": '{"status":404,"statusText":"Not Found","ok":false,"redirected":false}',
      "x-list": "1, 2",
    },
    without: ["x-powered-by"],
    origin: { url: "/missing" },
  },
];

let server: TestServer;
let origin: LocalServer;
let api: LocalServer;
const seen: Seen[] = [];
let zones = 0;

beforeAll(async () => {
  origin = await listenLocally((request, response) => {
    const { method = "", url = "", headers } = request;
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      const whole = { method, url, headers, body };
      seen.push(whole);
      const status = url.startsWith("/missing") ? 404 : 200;
      response.writeHead(status, { "content-type": "application/json", "x-powered-by": "an origin" });
      response.end(JSON.stringify(whole));
    });
  });
  api = await listenLocally((request, response) => {
    const url = new URL(request.url ?? "/", "http://api.test");
    if (url.pathname === "/redirect") response.writeHead(302, { location: "/part" }).end();
    else response.end(JSON.stringify({ part: url.searchParams.get("name") }));
  });
  const { city, asn } = writeGeoFiles();
  server = await startTestServer({
    geoCity: city,
    geoAsn: asn,
    trustedProxies: ["127.0.0.1"],
    privateNetworks: "all",
    // Reaches the memory limit first, also on a busy machine.
    snippetCpuMs: 500,
  });
});
afterAll(async () => {
  await server.close(1000);
  origin.close();
  api.close();
});

const use = (name: string): SnippetInUse => ({
  name: name.replaceAll("-", "_"),
  code: example(name).replaceAll("http://api.test", api.url),
});

async function zoneWith(names: readonly string[]): Promise<string> {
  const host = `example-${zones++}.example`;
  await createZone(server.ready.api, host, origin.port, names.map(use));
  return host;
}

describe("examples", () => {
  it.each(cases)("$what", async ({ snippets, request = {}, ...expected }) => {
    const host = await zoneWith(snippets);
    seen.length = 0;
    const answer = await askWhole(server.ready.edge, host, request);
    expect({ status: answer.status, body: answer.body }).toEqual({
      status: expected.status ?? 200,
      body: expected.body ?? expect.any(String),
    });
    expect(answer.headers).toMatchObject(expected.headers ?? {});
    for (const name of expected.without ?? []) expect(answer.headers).not.toHaveProperty(name);
    if (expected.json !== undefined) expect(JSON.parse(answer.body)).toEqual(expected.json);
    if (expected.origin === null) expect(seen).toEqual([]);
    else if (expected.origin !== undefined) expect(seen).toMatchObject([expected.origin]);
  });
});

it("signs requests to the origin", async () => {
  const host = await zoneWith(["sign"]);
  seen.length = 0;
  const answer = await askWhole(server.ready.edge, host, { method: "POST", path: "/signed?x", body: "kept" });
  expect(answer.status).toBe(200);
  const { headers, body } = seen[0]!;
  const message = `POST /signed ${String(headers["x-request-uuid"])}`;
  const signature = createHmac("sha256", "a secret that the origin knows").update(message).digest("hex");
  expect([headers["x-signature"], body]).toEqual([signature, "kept"]);
});

it("runs on the requests that its rule selects, from the next one after every change", async () => {
  const host = `example-${zones++}.example`;
  const snippet = { ...use("maintenance"), expression: 'starts_with(http.request.uri.path, "/shop")' };
  const zone = await createZone(server.ready.api, host, origin.port, [snippet]);
  const status = async (path: string): Promise<number> =>
    (await askWhole(server.ready.edge, host, { path })).status;
  const rules = async (enabled: boolean): Promise<void> => {
    const rule = { snippet_name: snippet.name, expression: snippet.expression, enabled };
    await server.call("PUT", `${zone}/snippets/snippet_rules`, { rules: [rule] });
  };
  expect([await status("/"), await status("/shop/1")]).toEqual([200, 503]);
  await rules(false);
  expect(await status("/shop/1")).toBe(200);
  await rules(true);
  expect(await status("/shop/1")).toBe(503);
  await server.call("DELETE", `${zone}/snippets/snippet_rules`);
  expect(await status("/shop/1")).toBe(200);
});

it("gives scripts a bot score when the zone has bot management", async () => {
  const host = `example-${zones++}.example`;
  const zone = await createZone(server.ready.api, host, origin.port, [use("request-object")]);
  const botManagement = async (): Promise<unknown> => {
    const answer = await askWhole(server.ready.edge, host, {
      path: "/a.css",
      headers: { "user-agent": "curl/8" },
    });
    return (JSON.parse(answer.body) as { cf: { botManagement?: unknown } }).cf.botManagement;
  };
  expect(await botManagement()).toBeUndefined();
  await server.call("PATCH", `${zone}/settings/bot_management`, { value: "on" });
  expect(await botManagement()).toMatchObject({ score: 1, verified_bot: false, static_resource: true });
});
