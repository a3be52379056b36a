import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { writeGeoFiles } from "../helpers/geo.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";
import { startOrigin, type TestOrigin } from "./harness.ts";

/**
 * Rules about the client, through the real edge. The Host header at the origin shows which origin rule
 * matched.
 */
let origin: TestOrigin;
let server: TestServer;
let zone: string;
let zones = 0;
let host: string;

beforeAll(async () => {
  origin = await startOrigin((request, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(request.headers));
  });
  const { city, asn } = writeGeoFiles();
  server = await startTestServer({ geoCity: city, geoAsn: asn, trustedProxies: ["127.0.0.1", "10.0.0.0/8"] });
});
afterAll(async () => {
  await server.close(1000);
  origin.close();
});
beforeEach(async () => {
  host = `cf-${zones++}.example`;
  zone = `/zones/${(await server.call("POST", "/zones", { name: host })).body.result.id}`;
  await server.call("POST", `${zone}/dns_records`, {
    type: "A",
    name: host,
    content: "127.0.0.1",
    proxied: true,
    ttl: 1,
  });
});

async function rule(expression: string): Promise<void> {
  const to = { origin: { port: origin.port } };
  const answer = await server.call("PUT", `${zone}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [
      { action: "route", expression: "true", action_parameters: to },
      { action: "route", expression, action_parameters: { host_header: "matched.example" } },
    ],
  });
  expect(answer.body.errors).toEqual([]);
}
async function ask(headers: Record<string, string> = {}): Promise<Record<string, string>> {
  const answer = await requestEdge(server.ready.edge, host, "/", headers);
  expect(answer.status).toBe(200);
  return JSON.parse(answer.body) as Record<string, string>;
}
const matches = async (headers: Record<string, string>): Promise<boolean> =>
  (await ask(headers))["host"] === "matched.example";

const berlin = { "x-forwarded-for": "192.0.2.1" };
const austin = { "x-forwarded-for": "198.51.100.1" };
const nowhere = { "x-forwarded-for": "100.64.0.1" };

it.each<[expression: string, headers: Record<string, string>]>([
  ['ip.geoip.country eq "DE"', berlin],
  ['ip.src.country in {"US" "CA"}', austin],
  ['ip.src.country eq "XX"', nowhere],
  ["ip.geoip.asnum eq 64496", berlin],
  ["ip.src.asnum in {64497}", austin],
  ["ip.src.is_in_european_union", berlin],
  ['not ip.geoip.is_in_european_union and ip.src.continent eq "NA"', austin],
  ['ip.src.city eq "Berlin" and ip.src.region_code eq "BE"', berlin],
  ['ip.src.subdivision_2_iso_code eq "TRA"', austin],
  ['ip.src.timezone.name eq "America/Chicago" and ip.src.metro_code eq "635"', austin],
  ['ip.src.lat eq "52.50000" and ip.src.postal_code eq "10115"', berlin],
  ["ip.src in {192.0.2.0/24}", berlin],
  ["ip.src eq 192.0.2.1", { "x-forwarded-for": "6.6.6.6, 192.0.2.1, 10.0.0.1" }],
  ["ip.src eq 127.0.0.1", {}],
  ["cf.edge.server_ip eq 127.0.0.1 and cf.edge.server_port gt 0", {}],
  ['cf.tls_version eq "" and not ssl', {}],
  ['cf.tls_version eq "TLSv1.3"', { "selvedge-cf": '{"tlsVersion":"TLSv1.3"}' }],
  ['ip.src.country eq "SE"', { ...berlin, "selvedge-cf": '{"country":"SE"}' }],
  ["cf.bot_management.score eq 99", { "user-agent": "curl/8" }], // not enabled
])("%s holds for %j", async (expression, headers) => {
  await rule(expression);
  expect(await matches(headers)).toBe(true);
  await rule(`not (${expression})`);
  expect(await matches(headers)).toBe(false);
});

it("sends the origin the client's address, and none of the internal headers", async () => {
  await rule("ssl");
  const seen = await ask({ "x-forwarded-for": "6.6.6.6, 192.0.2.1", "selvedge-cf": "{}" });
  expect(seen).toMatchObject({
    "cf-connecting-ip": "192.0.2.1",
    "x-forwarded-for": "6.6.6.6, 192.0.2.1, 127.0.0.1",
  });
  expect(seen).not.toHaveProperty("selvedge-cf");
});

it("refuses invalid headers of a trusted proxy", async () => {
  await rule('ip.src.country eq "DE"');
  const answer = await requestEdge(server.ready.edge, host, "/", { "selvedge-cf": "nonsense" });
  expect([answer.status, answer.body.includes("selvedge-cf")]).toEqual([400, true]);
});

it("scores clients of a zone while it has bot management", async () => {
  const setting = `${zone}/settings/bot_management`;
  const before = (await server.call("GET", setting)).body.result;
  expect(before).toMatchObject({ id: "bot_management", value: "off", editable: true });
  await rule("cf.bot_management.score lt 30");
  const curl = { "user-agent": "curl/8.5.0", accept: "*/*" };
  const browser = {
    "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    accept: "text/html",
    "accept-language": "de",
    "accept-encoding": "gzip",
  };
  expect(await matches(curl)).toBe(false);
  const on = await server.call("PATCH", setting, { value: "on" });
  expect(on.body.result).toMatchObject({ value: "on" });
  expect((await server.call("PATCH", setting, { value: "on" })).body.result).toEqual(on.body.result);
  expect([await matches(curl), await matches(browser)]).toEqual([true, false]);
  await server.call("PATCH", setting, { value: "off" });
  expect(await matches(curl)).toBe(false);
});

it("ignores proxy headers when no proxy is trusted", async () => {
  const { city } = writeGeoFiles();
  const open = await startTestServer({ geoCity: city });
  try {
    const { id } = (await open.call("POST", "/zones", { name: "plain.example" })).body.result as {
      id: string;
    };
    const record = { type: "A", name: "plain.example", content: "127.0.0.1", proxied: true, ttl: 1 };
    await open.call("POST", `/zones/${id}/dns_records`, record);
    await open.call("PUT", `/zones/${id}/rulesets/phases/http_request_origin/entrypoint`, {
      rules: [
        { action: "route", expression: "true", action_parameters: { origin: { port: origin.port } } },
        {
          action: "route",
          expression: 'ip.src.country eq "DE" or ip.src ne 127.0.0.1',
          action_parameters: { host_header: "fooled.example" },
        },
      ],
    });
    const headers = { ...berlin, "selvedge-cf": '{"country":"DE"}' };
    const answer = await requestEdge(open.ready.edge, "plain.example", "/", headers);
    const seen = JSON.parse(answer.body) as Record<string, string>;
    expect(seen).toMatchObject({ host: "plain.example", "cf-connecting-ip": "127.0.0.1" });
    expect(seen["x-forwarded-for"]).toBe("192.0.2.1, 127.0.0.1");
  } finally {
    await open.close(1000);
  }
});

it("does not start with invalid databases or proxies", async () => {
  await expect(startTestServer({ geoCity: "none.mmdb" })).rejects.toThrow("none.mmdb");
  await expect(startTestServer({ trustedProxies: ["10.0.0.0/40"] })).rejects.toThrow("--trusted-proxies");
});
