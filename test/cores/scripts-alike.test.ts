import { createHash } from "node:crypto";
import { once } from "node:events";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createZone } from "../snippets/example-platform.ts";
import { jpegOf, scenery } from "../images/fixtures.ts";
import { startOutside, type AskOptions, type Calls, type Outside, type Visit } from "../runtime/platform.ts";
import { coresToken, startCores, uploadImage, type Cores } from "./cores.ts";

/** Scripts answer alike in one process and in edge processes: the same requests to two nodes, one of each kind. */
let nodes: Record<"one" | "edges", Cores>;
let outside: Outside;
let photo: Buffer;

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

/** The path of the same image on each node. */
const images = new Map<Calls, string>();

async function setUp(cores: Cores): Promise<void> {
  images.set(cores.calls, await uploadImage(cores, "photo", photo));
  await cores.call("PATCH", `/accounts/${cores.calls.account}/images/v1/config`, { flexible_variants: true });
  await deployPlain(cores);
  const kv = await cores.calls.createKv("values", { first: "1" });
  await deployBound(cores, kv);
  await cores.calls.deploy("objects", {
    code: objectCode,
    bindings: [{ type: "durable_object_namespace", name: "ROOM", class_name: "Room" }],
    metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Room"] } },
  });
  await deployCallers(cores, kv);
  await deploySite(cores);
  await inZones(cores);
}

async function deployPlain({ calls }: Cores): Promise<void> {
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
async function deployBound(cores: Cores, kv: string): Promise<void> {
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
async function deployCallers({ calls }: Cores, kv: string): Promise<void> {
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
async function inZones(cores: Cores): Promise<void> {
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
  await cores.call(
    "POST",
    `/zones/${await calls.createZone("routed.example", outside.port)}/workers/routes`,
    {
      pattern: "routed.example/script*",
      script: "routed",
    },
  );
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
      const heard = new Promise((resolve) => webSocket.addEventListener("message", ({ data }) => resolve(data)));
      webSocket.send("echo");
      return new Response(await heard);
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

beforeAll(async () => {
  photo = await jpegOf(scenery(60, 40));
  outside = await startOutside((request, response) => {
    if (request.url === "/photo") response.writeHead(200, { "content-type": "image/jpeg" }).end(photo);
    else
      request.pipe(response.writeHead(200, { "x-origin": "1" })).write(`${request.method} ${request.url} `);
  });
  const settings = ["--script-cpu-ms", "300", "--script-subrequests-max", "50", "--private-networks", "all"];
  const [one, edges] = await Promise.all([startCores(0, settings), startCores(2, settings)]);
  nodes = { one, edges };
  await Promise.all([setUp(one), setUp(edges)]);
}, 120_000);
afterAll(async () => {
  for (const node of Object.values(nodes)) await node[Symbol.asyncDispose]();
  await outside.close();
});

/** Without what differs between two answers of one node. */
const comparable = ({ headers, body, ...visit }: Visit): { status: number } => {
  const rest = { ...headers };
  for (const measured of ["cf-ray", "date", "server-timing", "cf-resized", "last-modified"])
    delete rest[measured];
  return {
    ...visit,
    headers: rest,
    body: body.replaceAll(/ray [0-9a-f]{16}/g, "ray"),
  } as never;
};

async function answerAlike(status: number, ask: (cores: Cores) => Promise<Visit>): Promise<void> {
  const one = comparable(await ask(nodes.one));
  expect(one.status).toBe(status);
  expect(comparable(await ask(nodes.edges))).toEqual(one);
}

const visits: [name: string, status: number, script: string, path: string, options?: AskOptions][] = [
  ["a request", 200, "plain", "/a?b=c", { headers: { "x-visitor": "v" } }],
  ["HEAD", 200, "plain", "/a", { method: "HEAD" }],
  ["a body", 200, "plain", "/echo", { method: "POST", body: "text" }],
  ["a large body", 200, "plain", "/echo", { method: "PUT", body: "0123456789".repeat(600_000) }],
  ["a status, a reason and cookies", 418, "plain", "/status"],
  ["an empty answer", 204, "plain", "/empty"],
  ["a stream", 200, "plain", "/stream"],
  ["a fetch", 200, "plain", "/fetch"],
  ["too many subrequests", 200, "plain", "/many"],
  ["a script that fetches itself", 508, "plain", "/loops"],
  ["an exception", 500, "plain", "/throw"],
  ["an exception without an origin", 500, "plain", "/reject"],
  ["too much CPU time", 503, "plain", "/loop"],
  ["bindings", 200, "bound", "/", { method: "POST", body: "streamed ".repeat(100_000) }],
  ["objects", 200, "objects", "/"],
  ["services", 200, "caller", "/"],
  ["a customer", 200, "caller", "/to/bob"],
  ["a customer that loops", 404, "caller", "/to/looping"],
  ["a customer that fetches", 200, "caller", "/to/fetching"],
  ["a customer that does not exist", 404, "caller", "/to/nobody"],
  ["an asset", 200, "site", "/a.txt"],
  ["a compressed asset", 200, "site", "/a.txt", { headers: { "accept-encoding": "gzip" } }],
  ["a part of an asset", 206, "site", "/a.txt", { headers: { range: "bytes=6-11" } }],
  ["the index", 200, "site", "/"],
  ["a redirect to an asset", 307, "site", "/index.html"],
  ["a script behind assets", 200, "site", "/none"],
];
it.each(visits)("%s", async (_, status, script, path, options) => {
  await answerAlike(status, async ({ calls }) => calls.ask(script, path, options));
});

it("a script fetches another one of the installation", async () => {
  await answerAlike(200, async ({ calls }) =>
    calls.ask("plain", "/self", { headers: { "x-other": calls.hostOf("called") } }),
  );
});

it.each([
  ["a snippet", 200, "snippets.example", "/page"],
  ["a snippet that throws", 500, "snippets.example", "/bad"],
  ["a snippet that loops", 500, "snippets.example", "/bad-loop"],
  ["a picture of a snippet", 200, "snippets.example", "/small"],
  ["a route", 200, "routed.example", "/script"],
  ["a route's exception that passes to the origin", 200, "routed.example", "/script-pass"],
  ["a picture of a route", 200, "routed.example", "/script-small"],
  ["beside a route", 200, "routed.example", "/page"],
  ["an object that fetches from the visitor's origin", 200, "objects.example", "/page"],
  ["a WebSocket that a script opens to its zone's origin", 200, "sockets.cores.example", "/"],
])("%s", async (_, status, host, path) => {
  await answerAlike(status, async ({ calls }) => calls.askHost(host, path));
});

it.each<[name: string, status: number, options: string, headers?: Record<string, string>]>([
  ["a variant", 200, "public"],
  ["a picture of some width", 200, "w=20"],
  ["the same, once more", 200, "w=20"],
  ["the same for a browser that reads WebP", 200, "w=20", { accept: "image/webp" }],
  ["a part of a picture", 206, "w=20", { range: "bytes=0-9" }],
  ["a picture that the visitor has", 304, "w=20", { "if-none-match": "*" }],
  ["an unknown variant", 404, "none"],
  ["unknown options", 400, "w=x"],
])("%s of a stored image", async (_, status, options, headers = {}) => {
  const asked = async ({ calls }: Cores): Promise<Visit> =>
    calls.askHost("any.example", `${images.get(calls)!}/${options}`, { headers });
  await answerAlike(status, asked);
});

it.each([
  ["a script", "plain", "/upgrade"],
  ["an object", "objects", "/"],
])("a WebSocket to %s", async (_, script, path) => {
  const talk = async ({ calls }: Cores): Promise<unknown[]> => {
    const socket = calls.connect(script, path);
    await once(socket, "open");
    const heard: unknown[] = [];
    for (const text of ["one", "two ".repeat(20_000)]) {
      const next = once(socket, "message");
      socket.send(text);
      heard.push(String((await next)[0]));
    }
    if (script === "plain") {
      const closed = once(socket, "close");
      socket.send("end");
      heard.push(...(await closed).map(String));
    } else socket.close();
    return heard;
  };
  expect(await talk(nodes.edges)).toEqual(await talk(nodes.one));
});

it("an object fetches from the visitor's zone when the visitor has been answered", async () => {
  for (const { calls } of Object.values(nodes)) {
    expect((await calls.askHost("objects.example", "/late")).body).toBe("answered");
    await expect
      .poll(async () => (await calls.askHost("objects.example", "/heard")).body, { timeout: 10_000 })
      .toBe("of the script");
  }
});

it("a WebSocket to a script that fetches from its zone's origin", async () => {
  for (const { calls } of Object.values(nodes)) {
    const socket = calls.connect("sockets", "/", "sockets.cores.example");
    await once(socket, "open");
    const next = once(socket, "message");
    socket.send("x");
    expect(String((await next)[0])).toBe("whole x");
    socket.close();
  }
});

it("the API counts the runs of a customer, whichever process ran them", async () => {
  for (const node of Object.values(nodes)) {
    const { calls } = node;
    const path = `/accounts/${calls.account}/edge/dispatch/namespaces/customers/usage`;
    const requests = async (): Promise<number> => {
      const { result } = (await node.call("GET", path)) as {
        result: { script_name: string; requests: number }[];
      };
      return result.find(({ script_name: name }) => name === "bob")?.requests ?? 0;
    };
    const before = await requests();
    for (let i = 0; i < 6; i++) expect((await calls.ask("caller", "/to/bob")).status).toBe(200);
    await expect.poll(requests, { timeout: 10_000 }).toBeGreaterThanOrEqual(before + 6);
  }
});
