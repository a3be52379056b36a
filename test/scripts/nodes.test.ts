import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { startPostgres, type TestPostgres } from "../helpers/postgres.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";
import { ask, deploy, esm, upload } from "./harness.ts";

/** Two nodes on one PostgreSQL: changes on one reach the other's edge within a second. */
let postgres: TestPostgres;
let first: TestServer;
let second: TestServer;
beforeAll(async () => {
  postgres = await startPostgres();
  const databaseUrl = await postgres.createDatabase();
  first = await startTestServer({ databaseUrl });
  second = await startTestServer({ databaseUrl });
});
afterAll(async () => {
  await second.close(1000);
  await first.close(1000);
  await postgres.stop();
});

const answers = (text: string): string => `export default { fetch: () => new Response("${text}") };`;
const eventually = async (read: () => Promise<unknown>, expected: unknown): Promise<void> =>
  vi.waitFor(async () => expect(await read()).toEqual(expected), { interval: 50 });

it("uploads, routes and deletions take effect at the other node", async () => {
  const zone = (await first.call("POST", "/zones", { name: "nodes.example" })).body.result.id as string;
  const record = { type: "A", name: "www", content: "192.0.2.1", proxied: true };
  await first.call("POST", `/zones/${zone}/dns_records`, record);
  await deploy(first, "shared", answers("one"));
  const body = async () => (await ask(second, "shared")).body;
  await eventually(body, "one");
  await deploy(first, "shared", answers("two"));
  await eventually(body, "two");
  await first.call("POST", `/zones/${zone}/workers/routes`, {
    pattern: "www.nodes.example/*",
    script: "shared",
  });
  await eventually(async () => (await requestEdge(second.ready.edge, "www.nodes.example")).body, "two");
  await first.call("DELETE", `/accounts/${first.ready.account_id}/workers/scripts/shared`);
  await eventually(async () => (await ask(second, "shared")).status === 200, false);
});

it("customers' scripts run at both nodes, which read each other's values", async () => {
  const account = `/accounts/${first.ready.account_id}`;
  await first.call("POST", `${account}/edge/dispatch/namespaces`, { name: "n" });
  const created = await first.call("POST", `${account}/storage/kv/namespaces`, { title: "kv" });
  const id = created.body.result.id as string;
  const metadata = {
    main_module: "m.mjs",
    bindings: [{ type: "kv_namespace", name: "KV", namespace_id: id }],
  };
  const code = 'export default { fetch: async (_, env) => new Response(await env.KV.get("k")) };';
  await upload(first, `${account}/edge/dispatch/namespaces/n/scripts/tenant`, [
    { name: "metadata", content: JSON.stringify(metadata) },
    { name: "m.mjs", filename: "m.mjs", content: code, type: esm },
  ]);
  const dispatcher = "export default { fetch: (request, env) => env.N.get('tenant').fetch(request) };";
  await deploy(first, "dispatcher", dispatcher, {
    bindings: [{ type: "dispatch_namespace", name: "N", namespace: "n" }],
  });
  await first.call("PUT", `${account}/storage/kv/namespaces/${id}/values/k`, "written at one");
  await eventually(async () => (await ask(second, "dispatcher")).body, "written at one");
  await second.call("PUT", `${account}/storage/kv/namespaces/${id}/values/k`, "written at the other");
  expect((await ask(first, "dispatcher")).body).toBe("written at the other");
});
