import { createServer, type Server } from "node:http";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { startCollector, treeOf, type CollectedSpan, type Collector } from "../helpers/collector.ts";
import { startLink, type Link } from "../helpers/links.ts";
import { startPostgres, type TestPostgres } from "../helpers/postgres.ts";
import { startHosting, type Hosting } from "../runtime/platform.ts";

/**
 * Two nodes with one database. The origin is far from the first node and near the second, so the first one learns to send
 * requests through the second.
 */
const originAddress = "127.0.6.1";
const farAddress = "127.0.6.2";
const nearAddress = "127.0.6.3";
const host = "shop.nodes.example";
const folder = mkdtempSync(join(tmpdir(), "selvedge-traces-"));
const logs = [join(folder, "near.log"), join(folder, "far.log")];
let collector: Collector;
let postgres: TestPostgres;
let near: Hosting;
let far: Hosting;
let origin: Server;
let link: Link;
const received = new Map<string, string | undefined>();

beforeAll(async () => {
  collector = await startCollector();
  postgres = await startPostgres();
  const databaseUrl = await postgres.createDatabase();
  origin = createServer((request, response) => {
    received.set(request.url!, request.headers["traceparent"] as string | undefined);
    response.end("from the origin");
  });
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  const { port } = origin.address() as AddressInfo;
  link = await startLink({ host: originAddress, port: 0 }, { host: "127.0.0.1", port }, (client) => ({
    ms: client === farAddress ? 100 : 1,
  }));
  const common = {
    databaseUrl,
    otlpEndpoint: collector.url,
    relaySecret: "a secret of two nodes",
    privateNetworks: "all",
  };
  near = await startHosting({ ...common, accessLog: logs[0], originSourceAddress: nearAddress });
  far = await startHosting({
    ...common,
    accessLog: logs[1],
    originSourceAddress: farAddress,
    relays: `near=${near.ready.edge}`,
  });
  await far.createNamespace("shops");
  await far.deployCustomer("shops", "customer", {
    code: `export default { async fetch(request) {
      const { pathname } = new URL(request.url);
      return new Response("customer: " + await (await fetch("http://${host}" + pathname)).text());
    } };`,
  });
  await far.deploy("front", {
    code: `export default { fetch: (request, env) => env.SHOPS.get("customer").fetch(request) };`,
    bindings: [{ type: "dispatch_namespace", name: "SHOPS", namespace: "shops" }],
  });
  const zone = await far.newZone("nodes.example");
  const record = { type: "A", name: "shop", content: originAddress, proxied: true };
  await far.call("POST", `/zones/${zone}/dns_records`, record);
  await far.call("PUT", `/zones/${zone}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [{ action: "route", expression: "true", action_parameters: { origin: { port: link.port } } }],
  });
  await far.call("PATCH", `/zones/${zone}/edge/smart_routing`, { value: "on" });
  // The other node knows all of it a moment later.
  await vi.waitFor(async () => expect((await near.ask("front", "/ready")).status).toBe(200));
});
afterAll(async () => {
  await Promise.all([far.close(1000), near.close(1000)]);
  await link.close();
  origin.close();
  await postgres.stop();
  expect(collector.refused).toEqual([]);
  collector.close();
  rmSync(folder, { recursive: true });
});

async function requestPath(path: string): Promise<void> {
  const { status, body } = await far.ask("front", path);
  expect([status, body]).toEqual([200, "customer: from the origin"]);
}

/** The spans of a request whose only attempt at the origin went through the other node; undefined for others. */
async function relayed(path: string): Promise<CollectedSpan[] | undefined> {
  await requestPath(path);
  const first = await collector.find(
    ({ attributes, parentSpanId }) => attributes["url.path"] === path && parentSpanId === undefined,
  );
  const attempts = (await collector.trace(first.traceId, 6)).filter(
    ({ name, resource }) =>
      name === "origin GET" && resource["service.instance.id"] === first.resource["service.instance.id"],
  );
  const isRelayed = attempts.length === 1 && attempts[0]!.attributes["selvedge.relay"] === true;
  return isRelayed ? collector.trace(first.traceId, 8) : undefined;
}

const linesWith = async (ray: unknown): Promise<Record<string, unknown>[]> => {
  await Promise.all(
    [near, far].flatMap(({ services }) => services.accessLogWriters.map((log) => log.flush())),
  );
  return logs
    .flatMap((path) => readFileSync(path, "utf8").split("\n").slice(0, -1))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ RayID }) => RayID === String(ray).slice(0, 16));
};

/** The entries of the audit log for the deploy of a customer's script. */
async function deploys(script: string): Promise<unknown[]> {
  const path = `/accounts/${far.account}/logs/audit?since=2020-01-01&before=2100-01-01&resource_id=${script}`;
  return (await far.call("GET", path)).body.result;
}

it("is one trace from a visitor over a dispatcher, a customer, a fetch and two nodes to the origin", async () => {
  let spans: CollectedSpan[] | undefined;
  let path = "";
  for (let attempt = 0; attempt < 30 && spans === undefined; attempt++)
    spans = await relayed((path = `/attempt-${attempt}`));
  expect(treeOf(spans!)).toBe(
    [
      "edge GET",
      "  script front",
      "    script customer",
      "      fetch GET",
      "        edge GET",
      "          origin GET",
      "            edge GET",
      "              origin GET",
    ].join("\n"),
  );
  const nodes = new Set(spans!.map(({ resource }) => resource["service.instance.id"]));
  expect(nodes.size).toBe(2);
  const last = spans!.findLast(
    ({ name, attributes }) => name === "origin GET" && !attributes["selvedge.relay"],
  )!;
  expect(received.get(path)).toBe(`00-${last.traceId}-${last.spanId}-01`);
  // The request that crosses the nodes has one ray, and one line at each of them.
  const [crossing] = spans!.filter(
    ({ attributes }) => attributes["server.address"] === host && attributes["url.path"],
  );
  await vi.waitFor(async () => {
    const lines = await linesWith(crossing!.attributes["selvedge.ray"]);
    expect(lines.map(({ TraceID, EdgeResponseStatus }) => [TraceID, EdgeResponseStatus])).toEqual([
      [last.traceId, 200],
      [last.traceId, 200],
    ]);
  });
  // One entry tells who deployed the code that ran.
  const deployed = await deploys("customer");
  expect(deployed).toMatchObject([
    { action: { result: "success" }, raw: { method: "PUT", status_code: 200 }, resource: { id: "customer" } },
  ]);
});
