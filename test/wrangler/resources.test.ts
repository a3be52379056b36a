import { afterAll, beforeAll, expect, it } from "vitest";
import { ask } from "../scripts/harness.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";
import { isPrevious, Project } from "./harness.ts";

/**
 * Resources that wrangler deploys with scripts: namespaces, hosts, other scripts, static assets, dispatch
 * namespaces.
 */
let server: TestServer;
let project: Project;
let namespaceId: string;
const compatibility_date = "2026-01-01";
const timeout = 300_000;

beforeAll(async () => {
  server = await startTestServer();
  project = new Project(server);
  const zone = await server.call("POST", "/zones", { name: "wrangler.example" });
  const record = { type: "A", name: "www", content: "192.0.2.1", proxied: true };
  await server.call("POST", `/zones/${zone.body.result.id}/dns_records`, record);
});
afterAll(async () => {
  project.remove();
  await server.close(1000);
});

const answer = async (script: string, path?: string): Promise<string> =>
  (await ask(server, script, path)).body;

it(
  "kv: namespaces, keys and values of every kind",
  async () => {
    const created = await project.run(["kv", "namespace", "create", "things"]);
    namespaceId = /[0-9a-f]{32}/.exec(created)![0];
    const list = JSON.parse(await project.run(["kv", "namespace", "list"])) as {
      id: string;
      title: string;
    }[];
    expect(list.find(({ id }) => id === namespaceId)?.title).toContain("things");
    const at = ["--namespace-id", namespaceId, ...(isPrevious ? [] : ["--remote"])];
    await project.run(["kv", "key", "put", "plain", "value", ...at]);
    await project.run([
      "kv",
      "key",
      "put",
      "a/b c",
      "with metadata",
      "--metadata",
      '{"m":1}',
      "--ttl",
      "600",
      ...at,
    ]);
    expect(await project.run(["kv", "key", "get", "a/b c", "--text", ...at])).toContain("with metadata");
    project.write({
      "bulk.json": [
        { key: "k1", value: "one" },
        { key: "k2", value: "dHdv", base64: true },
      ],
    });
    await project.run(["kv", "bulk", "put", "bulk.json", ...at]);
    const keys = JSON.parse(await project.run(["kv", "key", "list", ...at])) as object[];
    expect(keys).toMatchObject([
      { name: "a/b c", metadata: { m: 1 }, expiration: expect.any(Number) },
      { name: "k1" },
      { name: "k2" },
      { name: "plain" },
    ]);
    project.write({ "keys.json": ["k1"] });
    await project.run(["kv", "bulk", "delete", "keys.json", "--force", ...at]);
    await project.run(["kv", "key", "delete", "plain", ...at]);
    expect(await project.run(["kv", "key", "list", "--prefix", "k", ...at])).not.toContain("k1");
  },
  timeout,
);

it(
  "a script with a namespace, a route and a domain of its own",
  async () => {
    project.write({
      "wrangler.json": {
        name: "bound",
        main: "index.js",
        compatibility_date,
        kv_namespaces: [{ binding: "KV", id: namespaceId }],
        routes: [
          { pattern: "www.wrangler.example/app/*", zone_name: "wrangler.example" },
          { pattern: "own.wrangler.example", custom_domain: true },
        ],
      },
      "index.js": `export default { async fetch(request, env) { return new Response(new URL(request.url).host + " " + await env.KV.get("k2")); } };`,
    });
    const output = await project.run(["deploy"]);
    expect(output).toContain("own.wrangler.example");
    const at = async (host: string, path: string) => (await requestEdge(server.ready.edge, host, path)).body;
    expect(await at("www.wrangler.example", "/app/x")).toBe("www.wrangler.example two");
    expect(await at("own.wrangler.example", "/")).toBe("own.wrangler.example two");
    // Because routes are given, the script has no host of its own.
    expect((await ask(server, "bound")).status).not.toBe(200);
  },
  timeout,
);

it(
  "a namespace that is made when it is first needed",
  async () => {
    project.write({
      "provisioned.json": {
        name: "provisioned",
        main: "p.js",
        compatibility_date,
        kv_namespaces: [{ binding: "KV" }],
      },
      "p.js": `export default { async fetch(_, env) { await env.KV.put("a", "made"); return new Response(await env.KV.get("a")); } };`,
    });
    const args = ["deploy", "--config", "provisioned.json"];
    if (isPrevious) args.push("--experimental-provision");
    await project.run(args);
    expect(await answer("provisioned")).toBe("made");
    await project.run(args);
    expect(await answer("provisioned")).toBe("made");
  },
  timeout,
);

it(
  "a script that calls another, and an entrypoint of it",
  async () => {
    project.write({
      "wrangler.json": {
        name: "caller",
        main: "caller.js",
        compatibility_date,
        services: [
          { binding: "OTHER", service: "bound" },
          { binding: "RPC", service: "callee", entrypoint: "Adder" },
        ],
      },
      "caller.js": `export default { async fetch(request, env) {
        return new Response(await (await env.OTHER.fetch("http://other/")).text() + " " + await env.RPC.add(1, 2));
      } };`,
      "callee.json": { name: "callee", main: "callee.js", compatibility_date },
      "callee.js": `import { WorkerEntrypoint } from "cloudflare:workers";
        export class Adder extends WorkerEntrypoint { add(a, b) { return a + b; } }
        export default { fetch: () => new Response("callee") };`,
    });
    await project.run(["deploy", "--config", "callee.json"]);
    await project.run(["deploy"]);
    expect(await answer("caller")).toBe("other two 3");
  },
  timeout,
);

it(
  "static files, sent once",
  async () => {
    project.write({
      "wrangler.json": {
        name: "site",
        main: "site.js",
        compatibility_date,
        assets: { directory: "public", binding: "ASSETS", not_found_handling: "none" },
      },
      "site.js": `export default { async fetch(request, env) { return new Response("script " + (await env.ASSETS.fetch("http://x/page")).status); } };`,
      "public/index.html": "<h1>index</h1>",
      "public/page.html": "<h1>page</h1>",
      "public/_headers": "/page\n  x-page: yes\n",
    });
    expect(await project.run(["deploy"])).toMatch(/2 new or modified/);
    expect(await ask(server, "site", "/page")).toMatchObject({
      body: "<h1>page</h1>",
      headers: { "x-page": "yes" },
    });
    expect(await answer("site", "/none")).toBe("script 200");
    project.write({ "public/page.html": "<h1>changed</h1>" });
    expect(await project.run(["deploy"])).toMatch(/1 new or modified/);
    expect(await answer("site", "/page")).toBe("<h1>changed</h1>");
    project.write({ "only.json": { name: "only", compatibility_date, assets: { directory: "public" } } });
    await project.run(["deploy", "--config", "only.json"]);
    expect(await answer("only")).toBe("<h1>index</h1>");
  },
  timeout,
);

it(
  "dispatch namespaces, and customers' scripts in them",
  async () => {
    await project.run(["dispatch-namespace", "create", "customers"]);
    await project.run(["dispatch-namespace", "rename", "customers", "tenants"]);
    expect(await project.run(["dispatch-namespace", "list"])).toContain("tenants");
    expect(await project.run(["dispatch-namespace", "get", "tenants"])).toContain("tenants");
    project.write({
      "dispatcher.json": {
        name: "dispatcher",
        main: "dispatcher.js",
        compatibility_date,
        dispatch_namespaces: [{ binding: "TENANTS", namespace: "tenants" }],
      },
      "dispatcher.js": `export default { fetch(request, env) { return env.TENANTS.get(new URL(request.url).pathname.split("/")[1]).fetch(request); } };`,
      "tenant.json": {
        name: "tenant",
        main: "tenant.js",
        compatibility_date,
        vars: { WHO: "a tenant" },
        assets: { directory: "public", binding: "ASSETS" },
      },
      "tenant.js": `export default { fetch: (request, env) => new Response("I am " + env.WHO) };`,
    });
    await project.run(["deploy", "--config", "tenant.json", "--dispatch-namespace", "tenants"]);
    await project.run(["deploy", "--config", "dispatcher.json"]);
    expect(await answer("dispatcher", "/tenant/x")).toBe("I am a tenant");
    await project.run(["deploy", "--config", "tenant.json", "--dispatch-namespace", "tenants"]);
    await project.run(["dispatch-namespace", "delete", "tenants"]);
    expect(await project.run(["dispatch-namespace", "list"])).not.toContain("tenants");
  },
  timeout,
);

it(
  "delete, also of what others use",
  async () => {
    await project.run(["delete", "--name", "only"], "y");
    expect((await ask(server, "only")).status).not.toBe(200);
    const output = await project.run(["delete", "--name", "callee"], "y\ny");
    expect(output).toContain("currently in use by other Workers");
    await project.run(["kv", "namespace", "delete", "--namespace-id", namespaceId], "y");
    expect(await project.run(["kv", "namespace", "list"])).not.toContain(namespaceId);
  },
  timeout,
);
