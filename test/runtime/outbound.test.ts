import { createServer, type AddressInfo, type Server } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { WebSocketServer } from "ws";
import { startHosting, startOutside, type Hosting, type Outside } from "./platform.ts";

let hosting: Hosting;
let outside: Outside;
/** A server for protocols other than HTTP. */
let raw: Server;
let rawConnections = 0;

const outbound = `export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    if (url.pathname.startsWith("/blocked")) return new Response("blocked for " + env.customer, { status: 403 });
    const headers = new Headers(request.headers);
    headers.set("x-customer", env.customer);
    headers.set("x-plan", JSON.stringify(env.plan ?? null));
    headers.set("x-cf", String(request.cf?.colo));
    return fetch(new Request(request, { headers }));
  },
};`;

beforeAll(async () => {
  hosting = await startHosting({ privateNetworks: "all" });
  outside = await startOutside((request, response) => {
    const to = /^\/redirect(\/.*)/.exec(request.url!)?.[1];
    if (to !== undefined) response.writeHead(302, { location: to }).end();
    else
      response.end(
        JSON.stringify({
          url: request.url,
          customer: request.headers["x-customer"],
          plan: request.headers["x-plan"],
        }),
      );
  });
  new WebSocketServer({ server: outside.server }).on("connection", (socket, { headers }) =>
    socket.send(String(headers["x-customer"])),
  );
  raw = createServer((socket) => {
    rawConnections++;
    socket.destroy();
  });
  await new Promise<void>((resolve) => raw.listen(0, "127.0.0.1", resolve));
  await hosting.createNamespace("guarded");
  await hosting.deploy("guard", outbound);
  await hosting.deploy("dispatcher", {
    code: `export default { async fetch(request, env) {
      const [, name] = new URL(request.url).pathname.split("/");
      return env.NS.get(name, {}, { outbound: { customer: name, plan: { tier: 2, name: "plus" } } }).fetch(request);
    } };`,
    bindings: [
      {
        type: "dispatch_namespace",
        name: "NS",
        namespace: "guarded",
        outbound: { worker: { service: "guard" }, params: [{ name: "customer" }, { name: "plan" }] },
      },
    ],
  });
});
afterAll(async () => {
  raw.close();
  await outside.close();
  await hosting.close(0);
});
beforeEach(() => {
  outside.seen.length = 0;
  rawConnections = 0;
});

/** The result of a customer's code; `OUTSIDE` and `RAW` are addresses. */
async function customer(
  body: string,
  more: { top?: string; flags?: string[]; name?: string } = {},
): Promise<unknown> {
  const { top = "", flags = [], name = "acme" } = more;
  const rawAddress = `127.0.0.1:${(raw.address() as AddressInfo).port}`;
  const code = `${top} export default { async fetch(request, env, ctx) {
    const run = async () => { ${body} };
    try { return Response.json({ value: (await run()) ?? null }); } catch (error) { return Response.json({ thrown: error.message }); }
  } };`;
  await hosting.deployCustomer("guarded", name, {
    code: code.replaceAll("OUTSIDE", outside.url).replaceAll("RAW", rawAddress),
    metadata: { compatibility_flags: flags },
  });
  const response = await hosting.ask("dispatcher", `/${name}`);
  expect(response.status, response.body).toBe(200);
  const answer = JSON.parse(response.body) as { value?: unknown; thrown?: string };
  return "thrown" in answer ? `thrown: ${answer.thrown}` : answer.value;
}

const passed = (url: string): object => ({
  url,
  customer: "acme",
  plan: '{"tier":2,"name":"plus"}',
});

describe("an outbound script", () => {
  test("gets every fetch with its parameters, and adds to it", async () => {
    expect(await customer(`return (await fetch("OUTSIDE/a")).json()`)).toEqual(passed("/a"));
    expect(await customer(`return (await fetch("OUTSIDE/b", { method: "POST", body: "x" })).json()`)).toEqual(
      passed("/b"),
    );
  });

  test("can answer a request itself", async () => {
    expect(
      await customer(`const a = await fetch("OUTSIDE/blocked"); return [a.status, await a.text()]`),
    ).toEqual([403, "blocked for acme"]);
    expect(outside.seen).toEqual([]);
  });

  test("gives each customer its own outbound parameters", async () => {
    const ask = `return (await (await fetch("OUTSIDE/who")).json()).customer`;
    await customer(ask, { name: "beta" });
    await customer(ask, { name: "gamma" });
    const answers = await Promise.all(
      Array.from({ length: 20 }, async (_, i) => {
        const name = i % 2 === 0 ? "beta" : "gamma";
        return [
          name,
          (JSON.parse((await hosting.ask("dispatcher", `/${name}`)).body) as { value: string }).value,
        ];
      }),
    );
    for (const [name, value] of answers) expect(value).toBe(name);
  });

  test("may read its parameters from cloudflare:workers too, and keeps its own bindings", async () => {
    await hosting.deploy("reading-guard", {
      code: `import { env as imported } from "cloudflare:workers";
        export default { fetch: (request, env) => Response.json([imported.customer, env.customer, env.OWN, Object.keys(env).sort()]) };`,
      bindings: [{ type: "plain_text", name: "OWN", text: "own" }],
    });
    await hosting.deploy("other-dispatcher", {
      code: `export default { fetch: (request, env) => env.NS.get("acme", {}, { outbound: { customer: "c" } }).fetch(request) };`,
      bindings: [
        {
          type: "dispatch_namespace",
          name: "NS",
          namespace: "guarded",
          outbound: { worker: { service: "reading-guard" } },
        },
      ],
    });
    await hosting.deployCustomer(
      "guarded",
      "acme",
      `export default { fetch: () => fetch("http://any.example/") };`,
    );
    expect(JSON.parse((await hosting.ask("other-dispatcher")).body)).toEqual([
      "c",
      "c",
      "own",
      ["OWN", "customer"],
    ]);
  });

  test("receives no parameter that the binding does not declare", async () => {
    await hosting.deploy("undeclared", {
      code: `export default { async fetch(request, env) {
        try { return await env.NS.get("acme", {}, { outbound: { other: 1 } }).fetch(request); } catch (error) { return new Response(error.message); }
      } };`,
      bindings: [
        {
          type: "dispatch_namespace",
          name: "NS",
          namespace: "guarded",
          outbound: { worker: { service: "guard" }, params: [{ name: "customer" }] },
        },
      ],
    });
    expect((await hosting.ask("undeclared")).body).toBe(
      'The outbound parameter "other" is not one of the binding\'s: customer.',
    );
  });

  test("that fails makes the customer's fetch fail", async () => {
    await hosting.deploy(
      "failing-guard",
      `export default { fetch() { throw new Error("guard is broken"); } };`,
    );
    await hosting.deploy("failing-dispatcher", {
      code: `export default { fetch: (request, env) => env.NS.get("trying").fetch(request) };`,
      bindings: [
        {
          type: "dispatch_namespace",
          name: "NS",
          namespace: "guarded",
          outbound: { worker: { service: "failing-guard" } },
        },
      ],
    });
    await hosting.deployCustomer(
      "guarded",
      "trying",
      `export default { async fetch() { try { return await fetch("${outside.url}/"); } catch (error) { return new Response(error.message); } } };`,
    );
    expect((await hosting.ask("failing-dispatcher")).body).toBe("guard is broken");
    expect(outside.seen).toEqual([]);
  });
});

/** Every request that reached the server outside came through the outbound script, which blocks these. */
describe("an outbound script cannot be avoided", () => {
  test.each([
    [
      "by a fetch kept from the start",
      `return (await kept("OUTSIDE/blocked")).status`,
      "const kept = fetch;",
      403,
    ],
    ["by globalThis.fetch", `return (await globalThis.fetch("OUTSIDE/blocked")).status`, "", 403],
    ["by a Request", `return (await fetch(new Request("OUTSIDE/blocked"))).status`, "", 403],
    ["by a redirect", `return (await fetch("OUTSIDE/redirect/blocked")).status`, "", 403],
    [
      "by a redirect of its own making",
      `return (await fetch("OUTSIDE/redirect/blocked", { redirect: "manual" })).status`,
      "",
      302,
    ],
    [
      "by a timer",
      `return new Promise((resolve) => setTimeout(async () => resolve((await fetch("OUTSIDE/blocked")).status), 1))`,
      "",
      403,
    ],
    [
      "by a promise that another request left",
      `return (await later).status`,
      `let go; const later = new Promise((resolve) => (go = resolve)).then(() => fetch("OUTSIDE/blocked")); later.catch(() => {}); go();`,
      "thrown: This works only while handling a request.",
    ],
    [
      "by an EventSource",
      `return new EventSource("OUTSIDE/blocked").readyState`,
      "",
      expect.stringContaining("thrown: new EventSource() is not supported"),
    ],
    [
      "by a WebSocket",
      `const socket = new WebSocket("OUTSIDE/blocked".replace("http", "ws")); return new Promise((resolve) => { socket.onopen = () => resolve("open"); socket.onerror = () => resolve("error"); })`,
      "",
      "error",
    ],
    [
      "by a WebSocket's own constructor",
      `const { constructor } = Object.getPrototypeOf(new WebSocketPair()[0]); const socket = new constructor("OUTSIDE/blocked".replace("http", "ws")); return new Promise((resolve) => { socket.onopen = () => resolve("open"); socket.onerror = () => resolve("error"); })`,
      "",
      "error",
    ],
    ["by caches", `return caches.default.match("OUTSIDE/blocked")`, "", null],
    ["by a cache of a name", `return (await caches.open("x")).match("OUTSIDE/blocked")`, "", null],
    [
      "by dynamic import",
      `return import("OUTSIDE/blocked").then(() => "loaded")`,
      "",
      expect.stringContaining("thrown: "),
    ],
  ])("%s", async (_how, body, top, value) => {
    expect(await customer(body, { top })).toEqual(value);
    expect(outside.seen.filter((each) => !each.includes("redirect"))).toEqual([]);
  });

  test("by a beacon", async () => {
    expect(await customer(`return navigator.sendBeacon("OUTSIDE/blocked", "x")`)).toBe(true);
    expect(await customer(`return navigator.sendBeacon("OUTSIDE/let-through", "x")`)).toBe(true);
    await vi.waitFor(() => expect(outside.seen).toEqual(["POST /let-through"]));
  });

  test("by a beacon that is the platform's", async () => {
    expect(
      await customer(
        `const { sendBeacon } = Object.getPrototypeOf(navigator); return sendBeacon.call(navigator, "OUTSIDE/native", "x")`,
      ),
    ).toBe(true);
    expect(await customer(`return (await fetch("OUTSIDE/blocked")).status`)).toBe(403);
    expect(outside.seen).toEqual([]);
  });

  test.each([
    [
      "connect()",
      `const { connect } = await import("cloudflare:sockets"); const socket = connect("RAW"); await socket.opened; return "open"`,
    ],
    [
      "connect() kept",
      `const socket = connect({ hostname: "127.0.0.1", port: Number("RAW".split(":")[1]) }, { secureTransport: "on" }); await socket.opened; return "open"`,
    ],
    [
      "node:net",
      `const net = await import("node:net"); return new Promise((resolve, reject) => net.connect(Number("RAW".split(":")[1]), "127.0.0.1").on("connect", () => resolve("open")).on("error", reject))`,
    ],
    [
      "node:tls",
      `const tls = await import("node:tls"); return new Promise((resolve, reject) => tls.connect(Number("RAW".split(":")[1]), "127.0.0.1").on("secureConnect", () => resolve("open")).on("error", reject))`,
    ],
  ])("by %s", async (_what, body) => {
    const top = `import { connect } from "cloudflare:sockets";`;
    expect(await customer(body, { top, flags: ["nodejs_compat"] })).toMatch(/^thrown: /);
    expect(rawConnections).toBe(0);
  });

  test("by node:http", async () => {
    const get = (path: string): string => `
      const http = await import("node:http");
      return new Promise((resolve, reject) => http.get("OUTSIDE${path}", (answer) => resolve(answer.statusCode)).on("error", reject));`;
    expect(await customer(get("/blocked"), { flags: ["nodejs_compat"] })).toBe(403);
    expect(outside.seen).toEqual([]);
    expect(await customer(get("/let"), { flags: ["nodejs_compat"] })).toBe(200);
  });

  test("by a WebSocket, which it sees as any other request", async () => {
    expect(
      await customer(
        `const socket = new WebSocket("OUTSIDE/open".replace("http", "ws")); return new Promise((resolve) => { socket.onmessage = ({ data }) => resolve(data); socket.onerror = ({ message }) => resolve(message); })`,
      ),
    ).toBe("acme");
  });

  test("by work left running after the answer", async () => {
    await customer(
      `ctx.waitUntil((async () => { await scheduler.wait(10); await fetch("OUTSIDE/blocked-late"); await fetch("OUTSIDE/let-late"); })()); return 1`,
    );
    await vi.waitFor(() => expect(outside.seen).toEqual(["GET /let-late"]));
  });
});
