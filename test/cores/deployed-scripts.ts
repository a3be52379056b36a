import { createHash } from "node:crypto";
import type { Outside } from "../runtime/platform.ts";
import { createZone } from "../snippets/example-platform.ts";
import { coresToken, type Cores } from "./cores.ts";

const module = (body: string): string => `export default { async fetch(request, env, ctx) { ${body} } };`;
const objectCode = `import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject {
  async count() { const n = ((await this.ctx.storage.get("n")) ?? 0) + 1; await this.ctx.storage.put("n", n); return n; }
  fail() { throw new TypeError("not so"); }
  async twice(f) { return (await f()) + (await f()); }
  async origin() { return (await fetch("http://objects.example/page")).text(); }
  async later() { await this.ctx.storage.put("heard", await shown(async () => (await fetch("http://objects.example/late-page")).text())); }
  async heard() { return this.ctx.storage.get("heard"); }
  async fetch(request) {
    if (request.headers.get("upgrade") === null)
      return new Response([request.method, request.url, await request.text(), request.cf?.httpProtocol].join(" "), { status: 202, headers: { "x-room": "1" } });
    const [client, server] = Object.values(new WebSocketPair());
    server.accept();
    server.addEventListener("message", ({ data }) => server.send("room " + data));
    return new Response(null, { status: 101, webSocket: client });
  }
}
const room = (env) => env.ROOM.getByName("x");
const shown = async (work) => { try { return await work(); } catch (error) { return error.name + ": " + error.message; } };
export default { async fetch(request, env, ctx) {
  if (request.headers.get("upgrade") !== null) return room(env).fetch(request);
  const { pathname } = new URL(request.url);
  if (pathname === "/late-page") return new Response("of the script");
  if (pathname === "/heard") return new Response(await room(env).heard());
  if (pathname === "/late") {
    ctx.waitUntil(scheduler.wait(300).then(() => room(env).later()));
    return new Response("answered");
  }
  return Response.json([
    await room(env).count(), await room(env).count(),
    await shown(() => room(env).fail()),
    await room(env).twice(() => "callback "),
    await shown(() => room(env).origin()),
    await (await room(env).fetch("http://room/a?b", { method: "POST", body: "body" })).text(),
    (await room(env).fetch(request)).headers.get("x-room"),
    await shown(() => env.ROOM.get(env.ROOM.idFromString("00".repeat(32))).count()),
  ]);
} };`;

const make = async (cores: Cores, path: string, body: unknown): Promise<Record<string, string>> => {
  const { status, result } = await cores.call("POST", path, body);
  if (status !== 200) throw new Error(`POST ${path}: ${status}`);
  return result;
};

/**
 * Deploys scripts with bindings of each type, customers, static assets, snippets and routes. `outside` is the server that
 * they fetch from, and the origin of their zones.
 */
export async function deployScripts(cores: Cores, outside: Outside): Promise<void> {
  await deployPlain(cores, outside);
  const kv = await cores.calls.createKv("values", { first: "1" });
  await deployBound(cores, outside, kv);
  await cores.calls.deploy("objects", {
    code: objectCode,
    bindings: [{ type: "durable_object_namespace", name: "ROOM", class_name: "Room" }],
    metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Room"] } },
  });
  await deployCallers(cores, outside, kv);
  await deploySite(cores);
  await inZones(cores, outside);
}

async function deployPlain({ calls }: Cores, outside: Outside): Promise<void> {
  await calls.deploy(
    "plain",
    module(`
    const { pathname } = new URL(request.url);
    if (pathname === "/throw") throw new RangeError("too far");
    if (pathname === "/reject") { ctx.passThroughOnException(); throw new Error("passed"); }
    if (pathname === "/loop") for (;;) {}
    if (pathname === "/echo") return new Response(request.body, { headers: { "x-method": request.method } });
    if (pathname === "/status") return new Response("teapot", { status: 418, statusText: "Short", headers: [["set-cookie", "a=1"], ["set-cookie", "b=2"]] });
    if (pathname === "/empty") return new Response(null, { status: 204 });
    if (pathname === "/upgrade") {
      const [client, server] = Object.values(new WebSocketPair());
      server.accept();
      server.addEventListener("message", ({ data }) => data === "end" ? server.close(4001, "bye") : server.send("echo " + data));
      return new Response(null, { status: 101, webSocket: client });
    }
    if (pathname === "/stream") {
      const { readable, writable } = new TransformStream();
      const writer = writable.getWriter();
      ctx.waitUntil((async () => { for (let i = 0; i < 5; i++) await writer.write(new TextEncoder().encode("part " + i + "\\n")); await writer.close(); })());
      return new Response(readable);
    }
    if (pathname === "/many") { const all = []; for (let i = 0; i < 60; i++) try { all.push((await fetch("${outside.url}/n")).status); } catch (e) { all.push(e.message); break; } return Response.json(all); }
    if (pathname === "/fetch") return fetch("${outside.url}/page", { method: "POST", body: "to outside" });
    if (pathname === "/self") return fetch("http://" + request.headers.get("x-other") + "/echo", { method: "POST", body: "to another" });
    if (pathname === "/loops") return fetch(request);
    return new Response([request.method, request.url, request.headers.get("x-visitor"), typeof request.cf, await request.text()].join(" "));`),
  );
}

/** A script with a binding of each type that main answers. */
async function deployBound(cores: Cores, outside: Outside, kv: string): Promise<void> {
  const base = `/accounts/${cores.calls.account}`;
  await make(cores, `${base}/queues`, { queue_name: "jobs" });
  const { uuid } = await make(cores, `${base}/d1/database`, { name: "data" });
  await cores.calls.deploy("bound", {
    code: module(`
      const shown = async (work) => { try { return await work(); } catch (error) { return error.name + ": " + error.message; } };
      await env.KV.put("second", "2", { metadata: { a: [1] } });
      await env.KV.put("stream", request.body ?? "none");
      const large = new Uint8Array(3 * 1024 * 1024).fill(7);
      await env.KV.put("large", large);
      await env.DB.exec("create table if not exists t (a integer, b text)");
      await env.DB.prepare("delete from t").run();
      const picture = await (await fetch("${outside.url}/photo")).arrayBuffer();
      return Response.json([
        await env.KV.get("first"), await env.KV.getWithMetadata("second"), await env.KV.get("stream"),
        (await env.KV.get("large", "arrayBuffer")).byteLength, await env.KV.list({ prefix: "s" }),
        await env.KV.get("absent"), await env.KV.delete("second"), await env.KV.get("second"),
        await shown(() => env.KV.put("", "no key")),
        await shown(() => env.KV.put("k".repeat(600), "long")),
        await env.Q.send({ a: 1 }).then(() => "sent"), await shown(() => env.Q.send("x".repeat(200_000))),
        (await env.DB.batch([env.DB.prepare("insert into t values (?, ?)").bind(1, "one"), env.DB.prepare("select * from t")]))[1].results,
        await shown(() => env.DB.prepare("select nothing from nowhere").all()),
        env.TEXT, env.JSON, typeof env.VERSION.id,
        await shown(() => env.FLOW.get("absent")),
        await env.IMAGES.info(new Blob([picture]).stream()),
        (await (await env.IMAGES.input(new Blob([picture]).stream()).transform({ width: 20 }).output({ format: "image/png" })).response().arrayBuffer()).byteLength,
      ]);`),
    bindings: [
      { type: "kv_namespace", name: "KV", namespace_id: kv },
      { type: "queue", name: "Q", queue_name: "jobs" },
      { type: "d1", name: "DB", id: uuid },
      { type: "plain_text", name: "TEXT", text: "text" },
      { type: "json", name: "JSON", json: { a: 1 } },
      { type: "version_metadata", name: "VERSION" },
      { type: "workflow", name: "FLOW", workflow_name: "flow" },
      { type: "images", name: "IMAGES" },
    ],
  });
}

/** Scripts that call others: by services, and of a dispatch namespace. */
async function deployCallers({ calls }: Cores, outside: Outside, kv: string): Promise<void> {
  await calls.deploy("called", {
    code: `import { WorkerEntrypoint } from "cloudflare:workers";
      export class Sum extends WorkerEntrypoint { add(a, b) { return a + b; } async kv() { return this.env.KV.get("first"); } fail() { throw new TypeError("not called so"); } }
      export default { fetch: async (request) => new Response("called " + request.url + " " + await request.text()) };`,
    bindings: [{ type: "kv_namespace", name: "KV", namespace_id: kv }],
  });
  await calls.createNamespace("customers");
  await calls.deployCustomer("customers", "bob", {
    code: module(`return new Response("bob " + request.url + await env.KV.get("first") + typeof request.cf)`),
    bindings: [{ type: "kv_namespace", name: "KV", namespace_id: kv }],
  });
  await calls.deployCustomer("customers", "looping", module("for (;;) {}"));
  await calls.deployCustomer("customers", "fetching", module(`return fetch("${outside.url}/of-customer")`));
  await calls.deploy("caller", {
    code: module(`
      const { pathname } = new URL(request.url);
      if (pathname.startsWith("/to/")) {
        try { return await env.CUSTOMERS.get(pathname.slice(4), {}, { limits: { cpuMs: 50 } }).fetch(request); }
        catch (error) { return new Response(error.message, { status: 404 }); }
      }
      const shown = async (work) => { try { return await work(); } catch (error) { return error.name + ": " + error.message; } };
      return Response.json([
        await (await env.CALLED.fetch("http://a/b", { method: "POST", body: "body" })).text(),
        await env.SUM.add(1, 2), await env.SUM.kv(), await shown(() => env.SUM.fail()),
      ]);`),
    bindings: [
      { type: "service", name: "CALLED", service: "called" },
      { type: "service", name: "SUM", service: "called", entrypoint: "Sum" },
      { type: "dispatch_namespace", name: "CUSTOMERS", namespace: "customers" },
    ],
  });
}

/** A script with static assets. */
async function deploySite(cores: Cores): Promise<void> {
  const { calls, server } = cores;
  const files = { "/index.html": "<h1>home</h1>", "/a.txt": "asset ".repeat(1000), "/404.html": "none" };
  const hashes = Object.entries(files).map(([path, content]) => {
    const hash = createHash("sha256").update(content).digest("hex").slice(0, 32);
    return [path, { hash, size: content.length, content }] as const;
  });
  const manifest = Object.fromEntries(hashes.map(([path, { hash, size }]) => [path, { hash, size }]));
  const session = await cores.call(
    "POST",
    `/accounts/${calls.account}/workers/scripts/site/assets-upload-session`,
    { manifest },
  );
  const form = new FormData();
  for (const [path, { hash, content }] of hashes)
    form.append(
      hash,
      new File([Buffer.from(content).toString("base64")], hash, {
        type: path.endsWith("html") ? "text/html" : "text/plain",
      }),
    );
  const uploaded = await fetch(
    `${server.ready.api}/accounts/${calls.account}/workers/assets/upload?base64=true`,
    {
      method: "POST",
      headers: { authorization: `Bearer ${(session.result as { jwt: string }).jwt}` },
      body: form,
    },
  );
  const { result } = (await uploaded.json()) as { result: { jwt: string } };
  await calls.deploy("site", {
    code: module(
      `return new Response("script, asset: " + (await (await env.ASSETS.fetch("http://x/a.txt")).text()).length);`,
    ),
    bindings: [{ type: "assets", name: "ASSETS" }],
    metadata: { assets: { jwt: result.jwt, config: { not_found_handling: "none" } } },
  });
}

/** Zones with snippets and with routes to scripts, in front of an origin. */
async function inZones(cores: Cores, outside: Outside): Promise<void> {
  const { server, calls } = cores;
  const snippets = [
    {
      name: "marks",
      code: `export default { async fetch(request) { const answer = new Response(...await (async () => { const a = await fetch(request); return [a.body, a]; })()); answer.headers.set("x-snippet", "1"); return answer; } }`,
      expression: 'not starts_with(http.request.uri.path, "/bad")',
    },
    {
      name: "throws",
      code: `export default { fetch() { throw new Error("from a snippet") } }`,
      expression: 'http.request.uri.path eq "/bad"',
    },
    {
      name: "loops",
      code: `export default { fetch() { for (;;) {} } }`,
      expression: 'http.request.uri.path eq "/bad-loop"',
    },
    {
      name: "resizes",
      code: `export default { fetch: (request) => fetch(request.url.replace("/small", "/photo"), { cf: { image: { width: 30 } } }) }`,
      expression: 'http.request.uri.path eq "/small"',
    },
  ];
  await createZone(server.ready.api, "snippets.example", outside.port, snippets, coresToken);
  const routed = await calls.createZone("routed.example", outside.port);
  await cores.call("POST", `/zones/${routed}/workers/routes`, {
    pattern: "routed.example/script*",
    script: "routed",
  });
  await cores.call("PATCH", `/zones/${routed}/settings/transformations`, { value: "on" });
  await calls.deploy(
    "routed",
    module(`
    if (request.headers.get("upgrade") !== null) return fetch(request);
    if (request.url.endsWith("small")) return fetch(request.url.replace("script-small", "photo"), { cf: { image: { width: 25 } } });
    if (request.url.endsWith("pass")) { ctx.passThroughOnException(); throw new Error("passed on"); }
    const answer = await fetch(request);
    return new Response("routed: " + await answer.text(), answer);`),
  );
  await deploySockets(cores);
  const zone = await calls.createZone("objects.example", outside.port);
  await cores.call("POST", `/zones/${zone}/workers/routes`, {
    pattern: "objects.example/*",
    script: "objects",
  });
}

/** A script that opens a WebSocket to its zone's origin for a request, and asks that origin for a WebSocket. */
async function deploySockets(cores: Cores): Promise<void> {
  await cores.addName("sockets");
  await cores.calls.deploy(
    "sockets",
    module(`
    if (request.headers.get("upgrade") === null) {
      const { webSocket } = await fetch(request.url, { headers: { upgrade: "websocket" } });
      webSocket.accept();
      const received = new Promise((resolve) => webSocket.addEventListener("message", ({ data }) => resolve(data)));
      webSocket.send("echo");
      return new Response(await received);
    }
    const page = await (await fetch(request.url)).text();
    const [client, server] = Object.values(new WebSocketPair());
    server.accept();
    server.addEventListener("message", ({ data }) => server.send(page + " " + data));
    return new Response(null, { status: 101, webSocket: client });`),
  );
  await cores.call("POST", `/zones/${cores.zoneId}/workers/routes`, {
    pattern: "sockets.cores.example/*",
    script: "sockets",
  });
}
