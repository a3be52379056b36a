import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startCollector, treeOf, type Collector } from "../helpers/collector.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";

const host = "www.trace.example";
const folder = mkdtempSync(join(tmpdir(), "selvedge-traces-"));
const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
let collector: Collector;
let server: TestServer;
let origin: Server;
/** The headers that the origin got, by path. */
const received = new Map<string, IncomingHttpHeaders>();

beforeAll(async () => {
  collector = await startCollector();
  server = await startTestServer({
    otlpEndpoint: collector.url,
    otlpHeaders: "x-tenant=a%20b",
    otelResourceAttributes: "deployment.environment.name=tests",
    accessLog: join(folder, "access.log"),
  });
  origin = createServer((request, response) => {
    received.set(request.url!, request.headers);
    response.writeHead(request.url!.startsWith("/bad") ? 502 : 200).end("from the origin");
  });
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  await addHost(server);
});

/** Creates the host, whose requests go to the origin. */
async function addHost(to: TestServer): Promise<void> {
  const { port } = origin.address() as AddressInfo;
  const id = await to.newZone("trace.example");
  const record = { type: "A", name: "www", content: "127.0.0.1", proxied: true };
  await to.call("POST", `/zones/${id}/dns_records`, record);
  await to.call("PUT", `/zones/${id}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [{ action: "route", expression: "true", action_parameters: { origin: { port } } }],
  });
}
afterAll(async () => {
  await server.close(0);
  origin.close();
  expect(collector.refused).toEqual([]);
  collector.close();
  rmSync(folder, { recursive: true });
});

it("traces a proxied request from the edge to the origin, with its signature left out", async () => {
  const path = "/a?x=1&sig=marked-secret";
  const { headers } = await requestEdge(server.ready.edge, host, path, { "user-agent": "tester/1" });
  const edge = await collector.find(({ attributes }) => attributes["url.path"] === "/a");
  const spans = await collector.trace(edge.traceId, 2);
  expect(treeOf(spans)).toBe("edge GET\n  origin GET");
  expect(edge).toMatchObject({
    kind: 2,
    isError: false,
    attributes: {
      "http.request.method": "GET",
      "http.response.status_code": "200",
      "url.scheme": "http",
      "url.query": "x=1&sig=REDACTED",
      "server.address": host,
      "client.address": "127.0.0.1",
      "network.protocol.version": "1.1",
      "user_agent.original": "tester/1",
      "selvedge.zone": "trace.example",
      "selvedge.ray": headers["cf-ray"],
    },
    resource: { "service.name": "selvedge", "deployment.environment.name": "tests" },
  });
  const attempt = spans.find(({ name }) => name === "origin GET")!;
  expect(attempt).toMatchObject({ kind: 3, attributes: { "network.peer.address": "127.0.0.1" } });
  expect(received.get(path)!["traceparent"]).toBe(`00-${edge.traceId}-${attempt.spanId}-01`);
  expect(
    JSON.stringify(spans, (_, value) => (typeof value === "bigint" ? String(value) : value)),
  ).not.toContain("marked-secret");
  expect(collector.headers[0]!["x-tenant"]).toBe("a b");
  await Promise.all(server.services.accessLogWriters.map((writer) => writer.flush()));
  const line = readFileSync(join(folder, "access.log"), "utf8");
  expect(line).toContain(`"TraceID":"${edge.traceId}","SpanID":"${edge.spanId}"`);
});

it("begins a new trace for a visitor who sends one, with a link to it", async () => {
  await requestEdge(server.ready.edge, host, "/stranger", { traceparent: parent, tracestate: "vendor=1" });
  const edge = await collector.find(({ attributes }) => attributes["url.path"] === "/stranger");
  expect(edge.parentSpanId).toBeUndefined();
  expect(edge.links).toMatchObject([{ traceId: parent.slice(3, 35), spanId: parent.slice(36, 52) }]);
  const { traceparent, tracestate } = received.get("/stranger")!;
  expect(traceparent).toContain(edge.traceId);
  expect(tracestate).toBeUndefined();
});

it("tells origins of each trace whether it is kept, and sends exactly those that are", async () => {
  const sampler = { tracesSampler: "traceidratio", tracesSamplerArg: "0.5" } as const;
  const half = await startTestServer({ otlpEndpoint: collector.url, ...sampler });
  await addHost(half);
  const paths = Array.from({ length: 40 }, (_, i) => `/half-${i}`);
  for (const path of paths) await requestEdge(half.ready.edge, host, path, { traceparent: parent });
  const sent = paths.map((path) => String(received.get(path)!["traceparent"]));
  for (const header of sent) expect(header).toMatch(/^00-[\da-f]{32}-[\da-f]{16}-0[01]$/);
  const traceId = (header: string): string => header.slice(3, 35);
  expect(new Set([parent, ...sent].map(traceId)).size).toBe(paths.length + 1);
  // The end sends what waits.
  await half.close(5000);
  const kept = sent.filter((header) => header.endsWith("-01"));
  expect(kept.length).toBeGreaterThan(0);
  expect(kept.length).toBeLessThan(paths.length);
  for (const header of kept)
    expect(collector.spans).toContainEqual(
      expect.objectContaining({
        traceId: traceId(header),
        spanId: header.slice(36, 52),
        name: "origin GET",
      }),
    );
  const lost = sent.filter((header) => header.endsWith("-00")).map(traceId);
  expect(collector.spans.filter((span) => lost.includes(span.traceId))).toEqual([]);
});

it("records failures of origins", async () => {
  await requestEdge(server.ready.edge, host, "/bad");
  const edge = await collector.find(({ attributes }) => attributes["url.path"] === "/bad");
  const spans = await collector.trace(edge.traceId, 2);
  for (const span of spans)
    expect(span).toMatchObject({ isError: true, attributes: { "error.type": "502" } });
});

it("traces calls of the API, down to the disk and the listeners of changes", async () => {
  const call = await collector.find(({ attributes }) =>
    String(attributes["http.route"]).endsWith("/dns_records"),
  );
  const spans = await collector.trace(call.traceId, 3);
  expect(treeOf(spans)).toBe(`${call.name}\n  storage.write\n  changes.ack`);
  expect(call.attributes).toMatchObject({ "http.response.status_code": "200" });
});
