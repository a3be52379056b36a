import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ownerToken } from "../helpers/server.ts";
import { sendAssets } from "../scripts/harness.ts";
import { startHosting, uploadForm, type Hosting } from "./platform.ts";

/** Unsupported features are refused by name when used; importing or inspecting them works. */
let hosting: Hosting;
beforeAll(async () => {
  hosting = await startHosting({ privateNetworks: "all" });
});
afterAll(async () => hosting.close(0));

describe.each([
  ["2025-04-01", ["nodejs_compat"]],
  ["2026-11-01", []],
])("with the date %s and the flags %j", (compatibility_date, compatibility_flags) => {
  test.each([
    [
      "internalNewHttpClient()",
      `sockets.internalNewHttpClient()`,
      "internalNewHttpClient() of cloudflare:sockets is not available here.",
    ],
    [
      "connect() that no module names",
      `(await import("cloudflare:" + "sockets")).connect("127.0.0.1:1")`,
      'connect() is there where a module of the script says "cloudflare:sockets" in its code.',
      "",
    ],
  ])("%s", async (_what, expression, message, imports = `import sockets from "cloudflare:sockets";`) => {
    const code = `${imports} export default { async fetch() {
      try { return new Response("came to " + await (${expression})); } catch (error) { return new Response(error.message); }
    } };`;
    await hosting.deploy("using", { code, metadata: { compatibility_date, compatibility_flags } });
    expect((await hosting.ask("using")).body).toBe(message);
  });
});

test("caches store nothing, and validate their arguments", async () => {
  await hosting.deploy(
    "caching",
    `const early = caches.default; export default { async fetch(request) {
      const results = [];
      for (const cache of [early, await caches.open("a name")]) {
        const attempt = async (key, response) => cache.put(key, response).then(() => "put", (error) => error.message);
        let readBytes = 0;
        const body = new ReadableStream({ pull(each) { readBytes += 1000; each.enqueue(new Uint8Array(1000)); if (readBytes === 5000) each.close(); } });
        const used = new Response("x");
        await used.text();
        results.push([
          await attempt(request, new Response(body)), readBytes,
          await cache.match(request) === undefined, await cache.match("http://x/") === undefined, await cache.delete(request),
          await attempt(new Request("http://x/", { method: "POST" }), new Response("x")),
          await attempt("http://x/", new Response("x", { status: 206 })),
          await attempt("http://x/", new Response("x", { headers: { vary: "*" } })),
          await attempt("http://x/", used),
          await cache.match("no address").then(() => "found", ({ name }) => name),
        ]);
      }
      return Response.json(results);
    } };`,
  );
  const each = [
    "put",
    5000,
    true,
    true,
    false,
    "Cannot cache the response to a request that is not GET.",
    "Cannot cache a part of a response (206 Partial Content).",
    'Cannot cache a response with "Vary: *".',
    "Cannot cache a response whose body has been read.",
    "TypeError",
  ];
  expect(JSON.parse((await hosting.ask("caching")).body)).toEqual([each, each]);
});

test("connect() of a binding that has fetch(), also where the other script has a method of that name", async () => {
  await hosting.deploy(
    "library",
    `import { WorkerEntrypoint } from "cloudflare:workers";
    export default class extends WorkerEntrypoint { connect() { return "called"; } fetch() { return new Response("fetched"); } }`,
  );
  await hosting.createNamespace("customers");
  const assets = `/accounts/${hosting.account}/workers/scripts/connecting`;
  const jwt = await sendAssets(hosting, assets, { "/index.html": "an asset" });
  await hosting.deploy("connecting", {
    code: `export default { async fetch(_request, env) {
      const results = [];
      for (const each of [env.SERVICE, env.CUSTOMERS.get("any"), env.ASSETS]) {
        try { results.push(String(await each.connect("example.com:5432"))); } catch (error) { results.push(error.message); }
      }
      return Response.json(results);
    } };`,
    bindings: [
      { type: "service", name: "SERVICE", service: "library" },
      { type: "dispatch_namespace", name: "CUSTOMERS", namespace: "customers" },
      { type: "assets", name: "ASSETS" },
    ],
    metadata: { assets: { jwt, config: { run_worker_first: true } } },
  });
  const refusal = expect.stringMatching(/^connect\(\) of a binding is not available here\./) as string;
  expect(JSON.parse((await hosting.ask("connecting")).body)).toEqual([refusal, refusal, refusal]);
});

test.each(["cloudflare:workers", "node:async_hooks", "./cloudflare:workers", "workerd:unsafe"])(
  "a module cannot take the place of workerd's: %s",
  async (name) => {
    const form = uploadForm("export default { fetch() { return new Response('x') } };");
    form.set(name, new File(["export default 1;"], name, { type: "application/javascript+module" }));
    const response = await fetch(`${hosting.ready.api}/accounts/${hosting.account}/workers/scripts/shadow`, {
      method: "PUT",
      headers: { authorization: `Bearer ${ownerToken}` },
      body: form,
    });
    expect([response.status, await response.text()]).toEqual([
      400,
      expect.stringContaining("Expected the path of a module"),
    ]);
  },
);
