import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { visit } from "../helpers/visit.ts";

let server: TestServer;
let origin: Server;
const host = "www.metrics.example";

beforeAll(async () => {
  server = await startTestServer({ metricsListen: "127.0.0.1:0" });
  origin = createServer((request, response) => response.writeHead(request.url === "/bad" ? 500 : 200).end());
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  const { port } = origin.address() as AddressInfo;
  const { id } = (await server.call("POST", "/zones", { name: "metrics.example" })).body.result;
  for (const content of ["127.0.0.1", "127.0.0.2"])
    await server.call("POST", `/zones/${id}/dns_records`, { type: "A", name: "www", content, proxied: true });
  await server.call("PUT", `/zones/${id}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [{ action: "route", expression: "true", action_parameters: { origin: { port } } }],
  });
  await server.call("PATCH", `/zones/${id}/edge/smart_routing`, { value: "on" });
});
afterAll(async () => {
  origin.close();
  await server.close(0);
});

const lines = async (): Promise<string[]> =>
  (await (await fetch(server.ready.metrics!)).text()).split("\n").filter((line) => line !== "");
const valueOf = async (series: string): Promise<number> =>
  Number(
    (await lines())
      .find((line) => line.startsWith(`${series} `))
      ?.split(" ")
      .at(-1) ?? NaN,
  );

it("counts requests at the edge and calls of the API", async () => {
  for (let i = 0; i < 3; i++) await visit(server.ready.edge, host);
  await visit(server.ready.edge, host, "/bad");
  await visit(server.ready.edge, "www.nobody.example");
  const ok = 'selvedge_edge_requests_total{zone="metrics.example",status="200",protocol="HTTP/1.1"}';
  const bad = ok.replace('"200"', '"500"');
  const unknown = 'selvedge_edge_requests_total{zone="",status="404",protocol="HTTP/1.1"}';
  await expect.poll(() => Promise.all([ok, bad, unknown].map(valueOf))).toEqual([3, 1, 1]);
  expect(await valueOf('selvedge_edge_request_duration_seconds_count{status="2xx"}')).toBe(3);
  expect(await valueOf('selvedge_api_requests_total{method="POST",status="200"}')).toBe(3);
});

it("returns both histograms of smart routing, and its paths", async () => {
  const labels = (series: string): string => `{zone="metrics.example",series="${series}"}`;
  const counts = await Promise.all(
    ["smart", "direct"].map((series) =>
      valueOf(`selvedge_smart_routing_ttfb_seconds_count${labels(series)}`),
    ),
  );
  expect(counts[0]! + counts[1]!).toBe(4);
  const buckets = (await lines()).filter((line) =>
    line.startsWith('selvedge_smart_routing_ttfb_seconds_bucket{zone="metrics.example",series="smart"'),
  );
  const values = buckets.map((line) => Number(line.split(" ").at(-1)));
  expect(values).toEqual(values.toSorted((a, b) => a - b));
  expect(buckets.at(-1)).toContain('le="+Inf"');
  expect(values.at(-1)).toBe(counts[0]);
  const requests = await Promise.all(
    ["127.0.0.1", "127.0.0.2"].map((path) =>
      valueOf(`selvedge_smart_routing_path_requests{zone="metrics.example",path="${path}"}`),
    ),
  );
  expect(requests[0]! + requests[1]!).toBeGreaterThanOrEqual(4);
});

it("reports cells, certificates and the process", async () => {
  expect(await valueOf('selvedge_cells{of="accounts",kind="shared"}')).toBe(0);
  expect(await valueOf("selvedge_certificate_packs_failing")).toBe(0);
  for (const name of [
    "object_cells",
    "objects_live",
    'object_events_total{kind="method"}',
    'object_faults_total{of="facet"}',
  ])
    expect(await valueOf(`selvedge_${name}`), name).toBe(0);
  expect(await valueOf("process_resident_memory_bytes")).toBeGreaterThan(1_000_000);
});

it("serves only /metrics, and only on its own listener", async () => {
  expect((await fetch(server.ready.metrics!.replace("/metrics", "/"))).status).toBe(404);
  expect((await fetch(server.ready.api.replace("/client/v4", "/metrics"))).status).toBe(404);
});
