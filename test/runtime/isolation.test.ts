import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import {
  nextMessage,
  startHosting,
  startOutside,
  type Hosting,
  type Outside,
  type ScriptUpload,
} from "./platform.ts";
import { spy } from "./spy.ts";

let hosting: Hosting;
let outside: Outside;
beforeAll(async () => {
  hosting = await startHosting({ privateNetworks: "all" });
  outside = await startOutside((_request, response) => response.end("outside"));
  await hosting.createNamespace("shop");
  await hosting.deploy("other", {
    code: `import { WorkerEntrypoint } from "cloudflare:workers";
export default class extends WorkerEntrypoint {
  fetch() { return new Response("other"); }
  async twice(call) { return (await call(1)) + (await call(2)); }
  async asks(target) { return target.answer(); }
}`,
  });
});
afterAll(async () => {
  await outside.close();
  await hosting.close(0);
});

/** Uses all features of a script. Returns those that failed, and the findings of the spy. */
const busy = (): string => `
install();
"x-selvedge-run".trim();
const works = seen.size;
seen.clear();
async function busy(request, env, ctx) {
  const failed = works ? [] : ["the spy sees nothing"];
  const attempt = async (name, expected, work) => {
    let found;
    try { found = await work(); } catch (error) { found = error.stack; }
    if (found !== expected) failed[failed.length] = name + ": " + found;
  };
  const url = "${outside.url}/";
  await attempt("fetch", "outside", async () => (await fetch(url)).text());
  await attempt("post", "outside", async () => (await fetch(new Request(url, { method: "POST", body: "x" }))).text());
  await attempt("cf", "undefined", async () => typeof request.cf?.selvedgeRun);
  await attempt("console", undefined, async () => console.log("a", { b: 1 }));
  await attempt("wait", undefined, async () => ctx.waitUntil(fetch(url).then((response) => response.text())));
  await attempt("socket", "close", () => new Promise((resolve) => {
    const socket = new WebSocket(url.replace("http", "ws"), ["a"]);
    socket.addEventListener("error", () => resolve("close"));
    socket.onclose = () => resolve("close");
  }));
  if (env.KV) await attempt("kv", "b", async () => { await env.KV.put("a", "b", { metadata: 1 }); return env.KV.get("a"); });
  if (env.OTHER) await attempt("service", "other", async () => (await env.OTHER.fetch("http://other/")).text());
  if (env.OTHER) await attempt("rpc", 30, () => env.OTHER.twice((n) => n * 10));
  class Target extends workers.RpcTarget { async answer() { return (await fetch(url)).text(); } }
  if (env.OTHER) await attempt("target", "outside", () => env.OTHER.asks(new Target()));
  if (env.SHOP) await attempt("dispatch", "true", async () =>
    String((await (await env.SHOP.get("customer").fetch("http://customer/")).json()).length === 0));
  return failed.concat([...seen]);
}`;
const object = (): string => `${spy}${busy()}
export default { async fetch(request, env, ctx) { return Response.json(await busy(request, env, ctx)); } };`;
const klass = (): string => `import { WorkerEntrypoint } from "cloudflare:workers";${spy}${busy()}
export default class extends WorkerEntrypoint { async fetch(request) { return Response.json(await busy(request, this.env, this.ctx)); } };`;

/** Names by which a script might import the platform's modules. */
const specifiers = [
  "entry.js",
  "user.js",
  "sandbox/worker/run.js",
  "workers/runtime/worker/script.js",
  "products/workflows/worker/entry.js",
  "env.js",
  "",
]
  .flatMap((name) => [
    `./__selvedge/${name}`,
    `__selvedge/${name}`,
    `/__selvedge/${name}`,
    `./other/../__selvedge/${name}`,
    `./%5f%5fselvedge/${name}`,
    `file:///__selvedge/${name}`,
    `file:///bundle/__selvedge/${name}`,
  ])
  .concat([
    "./worker",
    "worker",
    "./main.js",
    "system",
    "sandbox/worker/system.js",
    "cloudflare-internal:workers",
  ]);

test("no import gives a script more access", async () => {
  await hosting.deploy("importer", {
    code: {
      "index.js": `import { deep } from "./deep/own.js";
export class Main {}
export default { async fetch() {
  const found = {};
  for (const specifier of ${JSON.stringify(specifiers)}) {
    for (const load of [(name) => import(name), deep]) {
      const module = await load(specifier).catch(() => ({}));
      for (const name of Object.keys(module)) {
        const value = module[name];
        const target = name === "Control" || name === "WorkflowInvocations" ? value.prototype : value;
        try { target.fetch = () => new Response("patched"); } catch { found[name] = "frozen"; continue; }
        found[name] ??= value === (await import("./index.js")) ? "own" : "open";
      }
    }
  }
  return Response.json(found);
} };`,
      "deep/own.js": `export const deep = (name) => import(name);`,
    },
  });
  const { status, body } = await hosting.ask("importer");
  expect(status, body).toBe(200);
  // A class of the script stays its own inside the wrapper.
  const ours = { Entry: "frozen", Rpc: "frozen", Control: "frozen", user: "frozen" };
  const expected = { ...ours, "Entry:Main": "open", "Rpc:Main": "open" };
  expect(JSON.parse(body)).toEqual(expected);
  expect((await hosting.ask("importer")).body).toBe(body);
});

describe("functions that a script replaces see no token and nothing internal", () => {
  test("where another script calls its methods", async () => {
    const code = `import { WorkerEntrypoint } from "cloudflare:workers";${spy}${busy()}
export default class extends WorkerEntrypoint { async method(call) { await call(1); return busy({}, this.env, this.ctx); } };`;
    await hosting.deploy("called", code);
    await hosting.deploy("caller", {
      code: `export default { async fetch(request, env) { return Response.json(await env.CALLED.method((n) => n)); } };`,
      bindings: [{ type: "service", name: "CALLED", service: "called" }],
    });
    const { status, body } = await hosting.ask("caller");
    expect(status, body).toBe(200);
    expect(JSON.parse(body)).toEqual([]);
  });

  test("where an object is constructed, called and woken", async () => {
    await hosting.deploy("spied-object", {
      code: `import { DurableObject } from "cloudflare:workers";${spy}
install();
export class Room extends DurableObject {
  constructor(ctx, env) { super(ctx, env); ctx.waitUntil(Promise.resolve()); }
  fetch() { return new Response("fetched"); }
  async method() { await this.ctx.storage.setAlarm(Date.now()); return "called"; }
  alarm() { this.ctx.storage.kv.put("woken", true); }
  woken() { return this.ctx.storage.kv.get("woken") === true; }
  found() { return [...seen]; }
}
export default { async fetch(request, env) {
  const room = env.ROOMS.getByName("x");
  if (new URL(request.url).pathname === "/woken") return Response.json(await room.woken());
  const answers = [await room.method(), await (await room.fetch("http://room/")).text()];
  return Response.json([answers, await room.found()]);
} };`,
      bindings: [{ type: "durable_object_namespace", name: "ROOMS", class_name: "Room" }],
      metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["Room"] } },
    });
    const ask = async (path: string): Promise<unknown> =>
      JSON.parse((await hosting.ask("spied-object", path)).body);
    expect(await ask("/")).toEqual([["called", "fetched"], []]);
    await expect.poll(() => ask("/woken")).toBe(true);
    expect(await ask("/")).toEqual([["called", "fetched"], []]);
  });

  test.each([
    ["an object", object],
    ["a class", klass],
  ])("of %s", async (_, code) => {
    const kv = await hosting.createKv(`spied ${_}`);
    await hosting.deployCustomer("shop", "customer", object());
    await hosting.deploy("spy", {
      code: code(),
      bindings: [
        { type: "kv_namespace", name: "KV", namespace_id: kv },
        { type: "service", name: "OTHER", service: "other" },
        { type: "dispatch_namespace", name: "SHOP", namespace: "shop" },
      ],
    });
    // Also while its logs are tailed.
    const path = `/accounts/${hosting.account}/workers/scripts/spy/tails`;
    const { url } = (await hosting.call("POST", path, {})).body.result as { url: string };
    const watcher = new WebSocket(url, "trace-v1");
    await new Promise((resolve, reject) => watcher.once("open", resolve).once("error", reject));
    const message = nextMessage(watcher);
    const { status, body } = await hosting.ask("spy");
    expect(status, body).toBe(200);
    expect(JSON.parse(body)).toEqual([]);
    expect(JSON.parse(await message)).toMatchObject({ logs: [{ level: "log", message: ["a", { b: 1 }] }] });
    watcher.terminate();
  });
});

test("a script that breaks everything in reach affects no other script and gains no access", async () => {
  const dispatch = (customer: string, limits: string): ScriptUpload => ({
    code: `export default { async fetch(request, env) {
      return env.SHOP.get(${customer}, {}, ${limits}).fetch(request);
    } };`,
    bindings: [{ type: "dispatch_namespace", name: "SHOP", namespace: "shop" }],
  });
  await hosting.deploy(
    "front",
    dispatch(`new URL(request.url).pathname.split("/")[1]`, "{ limits: { subRequests: 5 } }"),
  );
  const innocent = `export default { async fetch(request) {
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => fetch("${outside.url}/innocent")));
    return new Response((await Promise.all(answers.map((answer) => answer.text()))).join(" "));
  } };`;
  await hosting.deployCustomer("shop", "innocent", innocent);
  for (let seed = 1; seed <= 12; seed++) {
    const saboteur = `${spy}
const native = fetch;
let isBroken = false;
export default { async fetch(request) {
  if (!isBroken) { isBroken = true; sabotage(${seed}, ${[2, 10, 50][seed % 3]}); }
  for (let i = 0; i < 20; i++) { try { await native("${outside.url}/saboteur-${seed}"); } catch {} }
  return new Response("done");
} };`;
    await hosting.deployCustomer("shop", "saboteur", saboteur);
    const asks = Array.from({ length: 10 }, async (_, i) =>
      hosting.ask("front", i % 2 === 0 ? "/innocent" : "/saboteur"),
    );
    for (const [i, { status, body }] of (await Promise.all(asks)).entries()) {
      if (i % 2 === 0) expect([seed, status, body]).toEqual([seed, 200, Array(5).fill("outside").join(" ")]);
      else expect(body).not.toContain("outside");
    }
    const fetched = outside.seen.filter((each) => each.endsWith(`/saboteur-${seed}`));
    expect(fetched.length).toBeLessThanOrEqual(5 * 5);
  }
  expect(outside.seen.filter((each) => each.includes("/saboteur-"))).not.toEqual([]);
});
