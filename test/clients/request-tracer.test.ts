import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { toFile } from "cloudflare";
import type { TraceItem } from "cloudflare/resources/request-tracers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { fc } from "../helpers/properties.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { askEdge, requestEdge } from "../helpers/edge-request.ts";

/** The official client asks for traces of a zone with rules of all phases, and the edge does what the traces say. */
let server: TestServer;
let zone_id: string;
let account_id: string;
/** Two origins, which answer with their number. */
const origins = [1, 2].map((number) =>
  createServer((request, response) =>
    response.end(`${number} ${request.headers.host} ${String(request.headers["x-by"] ?? "")}`),
  ),
);
const ports: number[] = [];

const action = (parameters: object): object => ({ action: "route", action_parameters: parameters });
const snippet = (name: string): string =>
  `export default { fetch(request) { const own = new Request(request); own.headers.append("x-by", "${name}"); return fetch(own); } };`;

beforeAll(async () => {
  server = await startTestServer();
  const { client } = server;
  ({ account_id } = server.ready);
  zone_id = await server.newZone("traced.example");
  for (const origin of origins) {
    await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
    ports.push((origin.address() as AddressInfo).port);
  }
  for (const [name, proxied] of [
    ["www", true],
    ["plain", false],
  ] as const)
    await client.dns.records.create({ zone_id, type: "A", name, content: "127.0.0.1", ttl: 1, proxied });
  await client.rulesets.phases.update("http_request_origin", {
    zone_id,
    rules: [
      { expression: "true", ...action({ origin: { port: ports[0] } }) },
      { expression: 'http.request.uri.path contains "two"', ...action({ origin: { port: ports[1] } }) },
      { expression: 'http.cookie contains "h"', ...action({ host_header: "own.internal" }) },
      { expression: "true", enabled: false, ...action({ origin: { port: 1 } }) },
    ] as never,
  });
  for (const name of ["first", "second"])
    await client.snippets.update(name, {
      zone_id,
      metadata: { main_module: "main.js" },
      files: [await toFile(Buffer.from(snippet(name)), "main.js", { type: "application/javascript+module" })],
    });
  await client.snippets.rules.update({
    zone_id,
    rules: [
      {
        snippet_name: "first",
        expression: 'starts_with(http.request.uri.path, "/s") or http.request.method eq "PUT"',
      },
      { snippet_name: "second", expression: 'http.user_agent ne "" and not http.request.uri.query eq ""' },
    ].map((rule) => ({ ...rule, enabled: true })),
  });
  const script = "export default { fetch: () => new Response('script') };";
  await client.workers.scripts.update("worker", {
    account_id,
    metadata: { main_module: "main.js", compatibility_date: "2026-01-01" },
    files: [await toFile(Buffer.from(script), "main.js", { type: "application/javascript+module" })],
  });
  await client.workers.routes.create({ zone_id, pattern: "*traced.example/*", script: "worker" });
  await client.workers.routes.create({ zone_id, pattern: "www.traced.example/*" });
  await client.workers.routes.create({ zone_id, pattern: "www.traced.example/w*", script: "worker" });
});
afterAll(async () => {
  for (const origin of origins) origin.close();
  await server.close(1000);
});

const trace = async (url: string, more: object = {}): Promise<{ status_code?: number; steps: Step[] }> => {
  const { status_code, trace: steps } = await server.client.requestTracers.traces.create({
    account_id,
    method: "GET",
    url,
    skip_response: true,
    ...more,
  });
  return { ...(status_code === undefined ? {} : { status_code }), steps: steps as never };
};
type Step = Omit<TraceItem, "trace"> & { outcome: string; parts?: Part; trace?: Step[] };
interface Part {
  text: string;
  operator?: string;
  value: string | null;
  decides: boolean;
  children: Part[];
}
const stepOf = (steps: readonly Step[], name: string): Step =>
  steps.find(({ step_name }) => step_name === name)!;
const outcomesOf = (step: Step): string[] => (step.trace ?? []).map(({ outcome }) => outcome);

it("shows each phase in order, the rules that acted, and the origin", async () => {
  const { steps, status_code } = await trace("http://www.traced.example/two", { skip_response: false });
  expect(steps.map(({ step_name, outcome }) => [step_name, outcome])).toEqual([
    ["dns_record", "acted"],
    ["zone_settings", "no_effect"],
    ["http_request_origin", "acted"],
    ["http_request_snippets", "no_match"],
    ["worker_routes", "no_match"],
    ["origin", "acted"],
  ]);
  expect(stepOf(steps, "dns_record")).toMatchObject({ action_parameters: { records: ["A 127.0.0.1"] } });
  expect(outcomesOf(stepOf(steps, "http_request_origin"))).toEqual([
    "no_effect",
    "acted",
    "no_match",
    "disabled",
  ]);
  expect(stepOf(steps, "origin").action_parameters).toEqual({
    addresses: ["127.0.0.1"],
    port: ports[1],
    host_header: "www.traced.example",
    scheme: "http",
    smart_routing: "off",
  });
  expect(status_code).toBe(200);
});

it("shows the value of each part, and which parts decide", async () => {
  const { steps } = await trace("http://www.traced.example/", { headers: { "User-Agent": "curl" } });
  const [first, second] = stepOf(steps, "http_request_snippets").trace!;
  expect(first!.parts).toMatchObject({
    operator: "or",
    value: "false",
    children: [
      { text: 'starts_with(http.request.uri.path, "/s")', value: "false", decides: true },
      {
        operator: "eq",
        value: "false",
        decides: true,
        children: [{ text: "http.request.method", value: '"GET"' }],
      },
    ],
  });
  expect(second!.parts).toMatchObject({
    operator: "and",
    children: [
      { operator: "ne", value: "true", decides: false, children: [{ value: '"curl"', decides: false }] },
      { operator: "not", value: "false", decides: true },
    ],
  });
});

it("names the route that wins, and those that it hides", async () => {
  const { steps } = await trace("http://www.traced.example/work");
  const routes = stepOf(steps, "worker_routes");
  expect(routes.trace!.map(({ name, outcome }) => [name, outcome])).toEqual(
    expect.arrayContaining([
      ["*traced.example/*", "no_effect"],
      ["www.traced.example/*", "no_effect"],
      ["www.traced.example/w*", "acted"],
    ]),
  );
  expect(stepOf(steps, "origin").outcome).toBe("depends");
});

it("stops at a redirect, at a name that is not proxied, and at a name without a record", async () => {
  await server.client.zones.settings.edit("always_use_https", { zone_id, value: "on" });
  const redirected = await trace("http://www.traced.example/");
  expect(redirected.steps.map(({ outcome }) => outcome)).toEqual([
    "acted",
    "acted",
    "not_reached",
    "not_reached",
    "not_reached",
    "not_reached",
  ]);
  await server.client.zones.settings.edit("always_use_https", { zone_id, value: "off" });
  for (const name of ["plain", "none"]) {
    const { steps } = await trace(`http://${name}.traced.example/`);
    expect(steps.map(({ outcome }) => outcome)).toEqual([
      "no_match",
      ...Array.from({ length: 5 }, () => "not_reached"),
    ]);
  }
});

it("uses the given address, location and score", async () => {
  const expression =
    'ip.src eq 198.51.100.7 and ip.src.country eq "DE" and ip.src.lat eq "52.5" and cf.bot_management.score eq 3 ' +
    'and ip.src.is_in_european_union and http.request.cookies["a"][0] eq "b" and http.request.body.raw eq "text"';
  const { steps } = await trace("https://www.traced.example/", {
    method: "POST",
    cookies: { a: "b" },
    body: { plain_text: "text" },
    context: {
      client_ip: "198.51.100.7",
      bot_score: 3,
      geoloc: { iso_code: "DE", latitude: 52.5, is_eu_country: true },
    },
    expression,
  });
  expect(stepOf(steps, "expression")).toMatchObject({ matched: true });
});

it("refuses hosts of others, texts that are no URL, and expressions that are not valid", async () => {
  const refusals: [object, string][] = [
    [{ url: "http://elsewhere.example/" }, "/body/url"],
    [{ url: "ftp://www.traced.example/" }, "/body/url"],
    [{ url: "http://www.traced.example/", expression: "http.hots eq 1" }, "/body/expression"],
    [{ url: "http://www.traced.example/", headers: { "a b": "c" } }, "/body/headers"],
    [{ url: "http://www.traced.example/", headers: { a: "b\r\nc: d" } }, "/body/headers"],
    [{ url: "http://www.traced.example/", headers: { a: "b\u0001" } }, "/body/headers"],
    [{ url: "http://www.traced.example/", cookies: { a: "b\u007f" } }, "/body/cookies"],
    [
      {
        url: "http://www.traced.example/",
        headers: Object.fromEntries(["a", "b", "c", "d", "e"].map((name) => [name, "x".repeat(8000)])),
      },
      "/body/headers",
    ],
    [{ url: "http://www.traced.example/", body: {} }, "/body/body"],
    [{ url: "http://www.traced.example/", method: "CONNECT" }, "/body/method"],
  ];
  for (const [given, pointer] of refusals) {
    const answer = await server.call("POST", `/accounts/${account_id}/request-tracer/trace`, {
      method: "GET",
      ...given,
    });
    expect([answer.status, answer.body.errors[0]?.source?.pointer?.slice(0, pointer.length)]).toEqual([
      400,
      pointer,
    ]);
  }
});

it("answers with a limited number of parts, and still tells which rules match", async () => {
  const own = await server.newZone("many-rules.example");
  const record = { type: "A", name: "www", content: "127.0.0.1", ttl: 1, proxied: true } as const;
  await server.client.dns.records.create({ zone_id: own, ...record });
  const part = 'http.request.body.raw eq ""';
  const expression = Array.from({ length: 120 }, () => part).join(" or ");
  const rule = (text: string): object => ({
    expression: text,
    ...action({ origin: { port: ports[0] } }),
  });
  await server.client.rulesets.phases.update("http_request_origin", {
    zone_id: own,
    rules: [
      ...Array.from({ length: 60 }, () => rule(expression)),
      rule(`${part} or http.request.method eq "POST"`),
    ] as never,
  });
  const { steps } = await trace("http://www.many-rules.example/", {
    method: "POST",
    body: { plain_text: "x".repeat(128 * 1024) },
  });
  expect(JSON.stringify(steps).length).toBeLessThan(3_000_000);
  const rules = stepOf(steps, "http_request_origin").trace!;
  expect(rules[0]!.parts).toBeDefined();
  expect(rules.at(-1)).toMatchObject({ matched: true });
  expect(rules.at(-1)!.parts).toBeUndefined();
});

it("refuses a request for which the rules have too much to do, as the edge does", async () => {
  const own = await server.newZone("busy-rules.example");
  const record = { type: "A", name: "www", content: "127.0.0.1", ttl: 1, proxied: true } as const;
  await server.client.dns.records.create({ zone_id: own, ...record });
  const query = "http.request.uri.query";
  const joined = (inner: string): string => `join(split(${query}, "a", 128), ${inner})`;
  await server.client.rulesets.phases.update("http_request_origin", {
    zone_id: own,
    rules: [
      { expression: `len(${joined(joined(joined(query)))}) eq 1`, ...action({ origin: { port: ports[0] } }) },
    ] as never,
  });
  const path = `/?${"a".repeat(1000)}`;
  const url = `http://www.busy-rules.example${path}`;
  const traced = await server.call("POST", `/accounts/${account_id}/request-tracer/trace`, {
    url,
    method: "GET",
  });
  expect([traced.status, traced.body.errors[0]!.message]).toEqual([400, expect.stringContaining("67108864")]);
  const answer = await askEdge(server.ready.edge, "www.busy-rules.example", path);
  expect([answer.status, answer.body]).toEqual([500, expect.stringContaining("1110")]);
});

it("leaves out what the token may not read", async () => {
  const group = async (name: string): Promise<{ id: string }> =>
    (await Array.fromAsync(server.client.user.tokens.permissionGroups.list())).find(
      (each) => each.name === name,
    ) as never;
  const { value } = (await server.client.user.tokens.create({
    name: "tracer",
    policies: [
      {
        effect: "allow",
        permission_groups: [await group("Allow Request Tracer Read")],
        resources: { [`com.cloudflare.api.account.${account_id}`]: "*" },
      },
      {
        effect: "allow",
        permission_groups: [await group("Zone Read"), await group("Snippets Read")],
        resources: { [`com.cloudflare.api.account.zone.${zone_id}`]: "*" },
      },
    ],
  })) as { value: string };
  const { body, status } = await server.call(
    "POST",
    `/accounts/${account_id}/request-tracer/trace`,
    { method: "GET", url: "http://www.traced.example/", skip_response: true },
    { authorization: `Bearer ${value}` },
  );
  expect(status).toBe(200);
  const steps = (body.result as { trace: Step[] }).trace;
  expect(steps.map(({ step_name, outcome }) => [step_name, outcome])).toEqual([
    ["dns_record", "acted"],
    ["zone_settings", "hidden"],
    ["http_request_origin", "hidden"],
    ["http_request_snippets", "no_match"],
    ["worker_routes", "hidden"],
    ["origin", "hidden"],
  ]);
  for (const text of ["two", "127.0.0.1"]) expect(JSON.stringify(steps)).not.toContain(text);
});

it("agrees with the edge for any request", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom("GET", "PUT"),
      fc.constantFrom("/", "/two", "/s", "/s/two?q", "/w", "/?x=1", "/stwo"),
      fc.constantFrom("", "curl"),
      fc.constantFrom("", "h=1", "a=b"),
      async (method, path, agent, cookie) => {
        const headers = {
          ...(agent === "" ? {} : { "user-agent": agent }),
          ...(cookie === "" ? {} : { cookie }),
        };
        const { steps } = await trace(`http://www.traced.example${path}`, { method, headers });
        const answer = await requestEdge(server.ready.edge, "www.traced.example", path, headers, method);
        // The second snippet depends on the first, which passes every request on here.
        const acted = (name: string): Step[] =>
          stepOf(steps, name).trace!.filter(({ outcome }) => ["acted", "depends"].includes(outcome));
        const isRun = acted("worker_routes").some((each) => each.action === "execute");
        const { port, host_header } = stepOf(steps, "origin").action_parameters as Record<string, unknown>;
        const by = acted("http_request_snippets").map(
          (each) => (each.action_parameters as { snippet_name: string }).snippet_name,
        );
        const expected = isRun
          ? "script"
          : `${ports.indexOf(port as number) + 1} ${String(host_header)} ${by.join(", ")}`;
        expect(answer.body).toBe(expected);
      },
    ),
    { numRuns: 60 },
  );
});

it("leaves an entry in the audit log for a request that is sent, without its credentials", async () => {
  const since = new Date(Date.now() - 1000).toISOString();
  const url = "http://user:hidden@www.traced.example/sent?token=hidden&kept=1";
  await trace(url, { skip_response: true });
  await trace(url, { method: "PUT", headers: { authorization: "hidden" }, skip_response: false });
  const entries = await Array.fromAsync(
    server.client.accounts.logs.audit.list({ account_id, since, before: "2100-01-01" }),
  );
  const own = entries.filter((entry) => JSON.stringify(entry).includes("/sent"));
  expect(own).toMatchObject([
    {
      action: { result: "success", description: expect.stringContaining("Trace a request") },
      resource: {
        request: {
          method: "PUT",
          url: "http://REDACTED@www.traced.example/sent?token=REDACTED&kept=1",
          headers: "[not shown]",
        },
      },
    },
  ]);
  expect(JSON.stringify(own)).not.toContain("hidden");
});
