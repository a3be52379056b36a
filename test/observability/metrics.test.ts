import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freePort } from "../helpers/free-port.ts";
import { ownerToken, startTestServer, type TestServer } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";

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
  for (let i = 0; i < 3; i++) await requestEdge(server.ready.edge, host);
  await requestEdge(server.ready.edge, host, "/bad");
  await requestEdge(server.ready.edge, "www.nobody.example");
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

it("counts error pages because of an origin, and no others", async () => {
  const { id } = (await server.call("POST", "/zones", { name: "down.example" })).body.result;
  await server.call("POST", `/zones/${id}/dns_records`, {
    type: "A",
    name: "www",
    content: "127.0.0.1",
    proxied: true,
  });
  await server.call("PUT", `/zones/${id}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [
      { action: "route", expression: "true", action_parameters: { origin: { port: await freePort() } } },
    ],
  });
  expect((await requestEdge(server.ready.edge, "www.down.example")).status).toBe(521);
  expect(await valueOf('selvedge_edge_origin_errors_total{code="521"}')).toBe(1);
  expect((await lines()).filter((line) => line.startsWith("selvedge_edge_origin_errors_total"))).toHaveLength(
    1,
  );
  expect(await valueOf("selvedge_edge_origin_connections")).toBeGreaterThanOrEqual(1);
});

it("measures writes, queues and workflows", async () => {
  expect(await valueOf("selvedge_storage_write_duration_seconds_count")).toBeGreaterThan(5);
  expect(await valueOf('selvedge_storage_errors_total{cause="disk_full"}')).toBe(0);
  expect(await valueOf('selvedge_workflow_instances{status="running"}')).toBe(0);
  const account = `/accounts/${server.ready.account_id}`;
  const { queue_id } = (await server.call("POST", `${account}/queues`, { queue_name: "jobs" })).body.result;
  await server.call("POST", `${account}/queues/${queue_id}/messages`, { body: "work", content_type: "text" });
  const labels = `{account="${server.ready.account_id}",queue="jobs"}`;
  // Messages are counted at most every five seconds.
  await expect.poll(async () => valueOf(`selvedge_queue_backlog_messages${labels}`)).toBe(1);
  expect(await valueOf(`selvedge_queue_oldest_message_seconds${labels}`)).toBeGreaterThan(0);
});

it("counts runs of scripts by their result, and the CPU time of their cells", async () => {
  const account = `/accounts/${server.ready.account_id}`;
  const { id } = (await server.call("POST", "/zones", { name: "code.example" })).body.result;
  const code = `export default { fetch(request) {
    if (request.url.endsWith("/bad")) throw new Error("on purpose");
    return new Response("hello");
  } }`;
  const form = new FormData();
  form.append("metadata", JSON.stringify({ main_module: "main.js", compatibility_date: "2026-01-01" }));
  form.append("main.js", new File([code], "main.js", { type: "application/javascript+module" }));
  const uploaded = await fetch(`${server.ready.api}${account}/workers/scripts/counted`, {
    method: "PUT",
    headers: { authorization: `Bearer ${ownerToken}` },
    body: form,
  });
  expect(uploaded.status).toBe(200);
  await server.call("PUT", `${account}/workers/domains`, {
    hostname: "app.code.example",
    service: "counted",
    zone_id: id,
    environment: "production",
  });
  expect((await requestEdge(server.ready.edge, "app.code.example")).status).toBe(200);
  await requestEdge(server.ready.edge, "app.code.example", "/bad");
  expect(await valueOf('selvedge_script_invocations_total{result="ok"}')).toBe(1);
  expect(await valueOf('selvedge_script_invocations_total{result="exception"}')).toBe(1);
  expect(await valueOf('selvedge_cells{of="accounts",kind="shared"}')).toBeGreaterThan(0);
  expect(await valueOf('selvedge_script_cpu_seconds_total{of="accounts"}')).toBeGreaterThan(0);
  expect(await valueOf('selvedge_cell_memory_bytes{of="accounts"}')).toBeGreaterThan(1_000_000);
});

it("serves only /metrics, and only on its own listener", async () => {
  expect((await fetch(server.ready.metrics!.replace("/metrics", "/"))).status).toBe(404);
  expect((await fetch(server.ready.api.replace("/client/v4", "/metrics"))).status).toBe(404);
});
