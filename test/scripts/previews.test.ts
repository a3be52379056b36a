import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { temporaryFolder } from "../helpers/process.ts";
import { ownerToken, type ApiResponse } from "../helpers/server.ts";
import { longer } from "../helpers/waits.ts";
import {
  previewForm,
  startHosting,
  startOutside,
  uploadForm,
  type Hosting,
  type Outside,
} from "../runtime/platform.ts";

/** Code that is not deployed runs for one request, in a process of its own, and nothing of it stays. */
let hosting: Hosting;
let outside: Outside;
/** The requests to /hold that wait for `release`. */
const held: (() => void)[] = [];
let kv: string;

const deployed = `export default {
  async fetch(request, env) {
    if (new URL(request.url).pathname === "/stored") return new Response(await env.STORE.get("note"));
    return new Response("deployed " + (globalThis.secret ?? ""));
  },
};`;

beforeAll(async () => {
  hosting = await startHosting({
    ephemeral: false,
    dataDir: temporaryFolder(),
    privateNetworks: "all",
    scriptCpuMs: 1000,
  });
  outside = await startOutside((request, response) => {
    if (request.url === "/hold") held.push(() => response.end("released"));
    else response.end(`outside got ${String(request.headers["x-from"] ?? "")}`);
  });
  kv = await hosting.createKv("notes", { note: "of the account" });
  await hosting.deploy("shop", {
    code: deployed,
    bindings: [
      { type: "kv_namespace", name: "STORE", namespace_id: kv },
      { type: "secret_text", name: "KEY", text: "s3cret" },
      { type: "plain_text", name: "MODE", text: "live" },
    ],
  });
});
afterAll(async () => {
  await hosting?.close(0);
  await outside?.close();
});

interface Asked {
  request?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
  script?: string;
  account?: string;
  of?: Hosting;
  signal?: AbortSignal;
}

async function preview(code: string, asked: Asked = {}): Promise<Pick<ApiResponse, "status" | "body">> {
  const { request = {}, metadata = {}, script = "shop", of = hosting, signal } = asked;
  const account = asked.account ?? of.account;
  const path = `/accounts/${account}/workers/scripts/${script}/edge/preview`;
  const response = await fetch(`${of.ready.api}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${ownerToken}` },
    body: previewForm(code, { timeout_ms: 30_000, ...metadata }, request),
    ...(signal && { signal }),
  });
  return { status: response.status, body: (await response.json()) as ApiResponse["body"] };
}

/** The result of a preview that must run. */
async function result(code: string, asked?: Asked): Promise<ApiResponse["body"]["result"]> {
  const { body } = await preview(code, asked);
  expect(body.errors).toEqual([]);
  return body.result;
}

const fetching = (body: string): string => `export default { async fetch(request, env, ctx) { ${body} } };`;
const running = (of = hosting): number => of.services.singleUseCells.running;

/** A preview that has begun, and waits for the outside until `release`. */
async function holding(
  asked: Asked = {},
): Promise<{ ended: ReturnType<typeof preview>; release: () => void }> {
  const before = held.length;
  const code = fetching(`return new Response(await (await fetch("${outside.url}/hold")).text());`);
  const ended = preview(code, asked);
  await vi.waitFor(() => expect(held.length).toBe(before + 1), longer({}));
  return { ended, release: held[before]! };
}

describe("a preview", () => {
  it("runs with the script's bindings, shows what it did, and leaves visitors the deployed version", async () => {
    const versions = async (): Promise<unknown> =>
      (await hosting.call("GET", `/accounts/${hosting.account}/workers/scripts/shop/versions`)).body.result;
    const before = await versions();
    const run = await result(
      fetching(`
        globalThis.secret = "left by a preview";
        console.log("key", env.KEY.length, { mode: env.MODE });
        console.error(new Error("only logged"));
        await env.STORE.put("note", "of a preview");
        const text = await (await fetch("${outside.url}/", { headers: { "x-from": "preview" } })).text();
        return new Response(text, { status: 203, headers: { "x-colo": String(request.cf.colo) } });`),
    );
    expect(run).toMatchObject({
      outcome: "ok",
      response: { status: 203, body: "outside got preview", body_encoding: "utf-8", is_truncated: false },
      logs: [
        { level: "log", message: ["key", 6, { mode: "live" }] },
        { level: "error", message: [expect.stringContaining("only logged")] },
      ],
      logs_truncated: false,
      exceptions: [],
      subrequests: 2,
    });
    expect(run.response.headers).toContainEqual({ name: "x-colo", value: "DEV" });
    expect(run.cpu_ms).toBeGreaterThanOrEqual(0);
    expect(run.wall_ms).toBeGreaterThan(0);
    expect((await hosting.ask("shop")).body).toBe("deployed ");
    // Bindings act on the account's data.
    expect((await hosting.ask("shop", "/stored")).body).toBe("of a preview");
    expect(await versions()).toEqual(before);
    expect(running()).toBe(0);
  });

  it("passes the request on as the edge would", async () => {
    const echo = fetching(`return Response.json({
      method: request.method, url: request.url, headers: Object.fromEntries(request.headers),
      body: [...new Uint8Array(await request.arrayBuffer())] });`);
    const run = await result(echo, {
      request: {
        method: "put",
        url: "http://any.example:8080/a%20b?c=d#e",
        headers: { "X-One": "1", cookie: "a=b" },
        body: { base64: "AP8=" },
      },
    });
    expect(JSON.parse(run.response.body)).toMatchObject({
      method: "PUT",
      url: "http://any.example:8080/a%20b?c=d",
      headers: { "x-one": "1", cookie: "a=b", "cf-connecting-ip": "127.0.0.1", "x-forwarded-proto": "http" },
      body: [0, 255],
    });
    const names = Object.keys(JSON.parse(run.response.body).headers as object);
    expect(names.filter((name) => name.startsWith("x-selvedge-"))).toEqual([]);
  });

  it.each([
    "Host",
    "content-length",
    "Transfer-Encoding",
    "connection",
    "x-selvedge-metadata",
    "cf-ray",
    "cdn-loop",
  ])("refuses the header %s by name", async (name) => {
    const { status, body } = await preview(deployed, { request: { headers: { [name]: "1" } } });
    expect(status).toBe(400);
    expect(body.errors[0]!.message).toContain(JSON.stringify(name));
  });

  it.each([
    ["an ftp URL", { request: { url: "ftp://a/" } }, "url"],
    ["another method", { request: { method: "CONNECT" } }, "method"],
    ["two bodies", { request: { body: { base64: "", plain_text: "" } } }, "body"],
    ["a line break in a header", { request: { headers: { a: "b\r\nc: d" } } }, "headers"],
    ["a field of deployments", { metadata: { migrations: { new_sqlite_classes: ["A"] } } }, "migrations"],
    ["a time above the limit", { metadata: { timeout_ms: 30_001 } }, "timeout_ms"],
    [
      "a resource that is not there",
      {
        metadata: { bindings: [{ type: "kv_namespace", name: "X", namespace_id: "f".repeat(32) }] },
      },
      "KV namespace",
    ],
  ] as const)("refuses %s", async (_what, asked, expected) => {
    const { status, body } = await preview(deployed, asked);
    expect(status).toBe(400);
    expect(JSON.stringify(body.errors)).toContain(expected);
  });

  it.each(["nothing(); export default {};", "export default {"])(
    "refuses %s as an upload does",
    async (code) => {
      const { status, body } = await preview(code);
      const upload = await fetch(`${hosting.ready.api}/accounts/${hosting.account}/workers/scripts/other`, {
        method: "PUT",
        headers: { authorization: `Bearer ${ownerToken}` },
        body: uploadForm(code),
      });
      expect(status).toBe(400);
      expect(body.errors).toEqual(((await upload.json()) as ApiResponse["body"]).errors);
      expect(running()).toBe(0);
    },
  );

  it("shows bytes that are no text in base64, and all copies of a header", async () => {
    const run = await result(
      fetching(`const headers = new Headers();
        headers.append("set-cookie", "a=1"); headers.append("set-cookie", "b=2");
        return new Response(new Uint8Array([255, 0]), { headers });`),
    );
    expect(run.response).toMatchObject({ body: "/wA=", body_encoding: "base64", is_truncated: false });
    expect(run.response.headers.filter(({ name }: { name: string }) => name === "set-cookie")).toEqual([
      { name: "set-cookie", value: "a=1" },
      { name: "set-cookie", value: "b=2" },
    ]);
  });

  it("takes other bindings, and keeps secrets unless told otherwise", async () => {
    const names = fetching("return Response.json(Object.keys(env).sort());");
    const text = { type: "plain_text", name: "NEW", text: "n" };
    const given = await result(names, { metadata: { bindings: [text] } });
    expect(JSON.parse(given.response.body)).toEqual(["KEY", "NEW"]);
    const without = await result(names, { metadata: { bindings: [text], keep_bindings: [] } });
    expect(JSON.parse(without.response.body)).toEqual(["NEW"]);
  });

  it("runs scripts with a fetch listener, and with classes", async () => {
    const listener = `addEventListener("fetch", (event) => event.respondWith(new Response("old form " + MODE)));`;
    const form = uploadForm({ code: { "index.js": listener } });
    const file = new File([listener], "index.js", { type: "application/javascript" });
    form.set("index.js", file);
    form.set("metadata", JSON.stringify({ body_part: "index.js", request: { url: "https://a/" } }));
    const path = `/accounts/${hosting.account}/workers/scripts/shop/edge/preview`;
    const response = await fetch(`${hosting.ready.api}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${ownerToken}` },
      body: form,
    });
    const { body } = ((await response.json()) as ApiResponse["body"]).result.response as { body: string };
    expect(body).toBe("old form live");
    const run = await result(`import { WorkerEntrypoint } from "cloudflare:workers";
      export default class extends WorkerEntrypoint { fetch() { return new Response("class " + this.env.MODE); } }`);
    expect(run.response.body).toBe("class live");
  });

  it("reaches the deployed version through a binding to the script itself, and its objects", async () => {
    const counter = (
      label: string,
    ): string => `import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
      export class Counter extends DurableObject {
        async add() { const n = (await this.ctx.storage.get("n") ?? 0) + 1; await this.ctx.storage.put("n", n); return "${label} " + n; }
      }
      export class Named extends WorkerEntrypoint { name() { return "${label}"; } }
      export default { async fetch(request, env) {
        const own = await (await env.SELF.fetch("https://a/fetched")).text().catch(String);
        return Response.json([await env.COUNTER.getByName("a").add(), await env.NAMED.name(), own]);
      } };`;
    const bindings = [
      { type: "durable_object_namespace", name: "COUNTER", class_name: "Counter" },
      { type: "service", name: "SELF", service: "shop" },
      { type: "service", name: "NAMED", service: "counting", entrypoint: "Named" },
    ];
    const metadata = { migrations: { new_tag: "v1", new_sqlite_classes: ["Counter"] } };
    await hosting.deploy("counting", { code: counter("deployed"), bindings, metadata });
    const run = await result(counter("unsaved"), { script: "counting" });
    expect(JSON.parse(run.response.body)).toEqual(["deployed 1", "deployed", "deployed "]);
    const given = await result(counter("unsaved"), { script: "counting", metadata: { bindings } });
    expect(JSON.parse(given.response.body)).toEqual(["deployed 2", "deployed", "deployed "]);
    const made = { type: "durable_object_namespace", name: "OTHER", class_name: "Other" };
    const refused = await preview(counter("unsaved"), { script: "counting", metadata: { bindings: [made] } });
    expect(refused.status).toBe(400);
    expect(refused.body.errors[0]!.message).toContain('"OTHER"');
  });

  it("dispatches to customers, whose code runs elsewhere", async () => {
    await hosting.createNamespace("customers");
    await hosting.deployCustomer(
      "customers",
      "one",
      fetching('globalThis.n = (globalThis.n ?? 0) + 1; return new Response("customer " + globalThis.n);'),
    );
    const code = fetching(`const one = env.NS.get("one");
      return new Response(await (await one.fetch("https://a/")).text());`);
    const metadata = { bindings: [{ type: "dispatch_namespace", name: "NS", namespace: "customers" }] };
    expect((await result(code, { metadata })).response.body).toBe("customer 1");
    expect((await result(code, { metadata })).response.body).toBe("customer 2");
  });

  it("is in the audit log, without headers and bodies", async () => {
    await preview(deployed, {
      request: { headers: { authorization: "of-a-visitor" }, body: { plain_text: "text-of-one" } },
    });
    const path = `/accounts/${hosting.account}/logs/audit?since=2020-01-01&before=2100-01-01&limit=1000`;
    const { body } = await hosting.call("GET", path);
    const entries = (body.result as { raw: { uri?: string } }[]).filter(
      ({ raw }) => raw.uri?.includes("/edge/preview") === true,
    );
    expect(entries.length).toBeGreaterThan(0);
    expect(JSON.stringify(entries)).not.toMatch(/of-a-visitor|text-of-one/);
  });
});

describe("hostile code", () => {
  it("in an endless loop ends at its CPU time, with the logs before it, and visitors notice nothing", async () => {
    const run = await result(
      fetching(`console.log("before"); await (await fetch("${outside.url}/")).text(); for (;;);`),
      { metadata: { limits: { cpu_ms: 100 } } },
    );
    expect(run).toMatchObject({ outcome: "exceededCpu", response: null, logs: [{ message: ["before"] }] });
    expect(run.cpu_ms).toBeGreaterThanOrEqual(100);
    expect(running()).toBe(0);
    expect((await hosting.ask("shop")).body).toBe("deployed ");
  });

  it("in an endless loop at its start is refused as by an upload", async () => {
    const { status, body } = await preview(`for (;;); ${deployed}`);
    expect(status).toBe(400);
    expect(body.errors[0]!.message).toBe("Error: Script startup exceeded CPU time limit.");
    expect(running()).toBe(0);
  });

  it("that takes memory is ended", async () => {
    const run = await result(fetching("const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1));"));
    expect(run).toMatchObject({ outcome: "exceededMemory", response: null });
    expect(running()).toBe(0);
  });

  it("that takes memory or CPU time after its answer is ended, and its answer is shown", async () => {
    const loop = fetching(`ctx.waitUntil((async () => {
        await (await fetch("${outside.url}/")).text(); for (;;); })());
      return new Response("first");`);
    const run = await result(loop, { metadata: { limits: { cpu_ms: 100 } } });
    expect(run).toMatchObject({ outcome: "exceededCpu", response: { body: "first", is_truncated: false } });
  });

  it("that answers without end gets the first part shown", async () => {
    const run = await result(
      fetching(`console.log("streams");
        return new Response(new ReadableStream({ pull(c) { c.enqueue(new TextEncoder().encode("€".repeat(10000))); } }));`),
    );
    expect(run).toMatchObject({
      outcome: "ok",
      response: { status: 200, body_encoding: "utf-8", is_truncated: true },
      logs: [{ message: ["streams"] }],
    });
    const bytes = Buffer.byteLength(run.response.body as string);
    expect(bytes).toBeGreaterThan(1024 * 1024 - 4);
    expect(bytes).toBeLessThanOrEqual(1024 * 1024);
  });

  it("that answers slowly without end is ended at its time", async () => {
    const run = await result(
      fetching(`console.log("drips");
        const { readable, writable } = new TransformStream();
        const writer = writable.getWriter();
        ctx.waitUntil((async () => { for (;;) {
          await writer.write(new TextEncoder().encode("drop ")); await new Promise((done) => setTimeout(done, 10)); } })());
        return new Response(readable);`),
      { metadata: { timeout_ms: 5000 } },
    );
    expect(run).toMatchObject({
      outcome: "exceededTime",
      response: { is_truncated: true },
      logs: [{ message: ["drips"] }],
    });
    expect(run.response.body).toContain("drop ");
    expect(running()).toBe(0);
  });

  it("that leaves a promise behind is ended at its time, and its logs are shown", async () => {
    const run = await result(
      fetching(`console.log("one"); ctx.waitUntil(new Promise(() => setInterval(() => {}, 1000)));
        ctx.waitUntil((async () => { await (await fetch("${outside.url}/")).text(); console.log("two"); })());
        return new Response("answered");`),
      { metadata: { timeout_ms: 5000 } },
    );
    expect(run).toMatchObject({
      outcome: "exceededTime",
      response: { body: "answered", is_truncated: false },
      logs: [{ message: ["one"] }, { message: ["two"] }],
      exceptions: [{ message: expect.stringContaining("did not end within 5000 ms") }],
    });
    expect(running()).toBe(0);
  });

  it("that works on after its answer makes no requests after the preview", async () => {
    await result(
      fetching(
        `setInterval(() => fetch("${outside.url}/late").catch(() => {}), 1); return new Response("answered");`,
      ),
    );
    expect(running()).toBe(0); // its process is gone
    await result(deployed); // requests that the gateway had already are answered by now
    const seen = outside.seen.length;
    await result(deployed);
    expect(outside.seen.length).toBe(seen);
  });

  it("that logs without measure gets the first logs shown", async () => {
    const many = await result(
      fetching('for (let i = 0; i < 100_000; i++) console.log(i); return new Response("x");'),
    );
    expect(many.outcome).toBe("ok");
    expect(many.logs_truncated).toBe(true);
    expect(many.logs).toHaveLength(1000);
    expect(many.logs[999].message).toEqual([999]);
    const long = await result(
      fetching('for (let i = 0; i < 50; i++) console.log("€".repeat(100_000)); return new Response("x");'),
    );
    expect(long.logs_truncated).toBe(true);
    expect(JSON.stringify(long.logs).length).toBeLessThan(600_000);
  });

  it.each([
    ["null", "throw null;"],
    ["undefined", "throw undefined;"],
    ["a symbol", "throw Symbol('s');"],
    ["a proxy", "throw new Proxy({}, { get() { throw 1; }, getPrototypeOf() { throw 2; } });"],
    [
      "an error with a name that throws",
      "throw Object.defineProperty(new Error('m'), 'name', { get() { throw 1; } });",
    ],
    ["an error with texts of other types", "throw Object.assign(new Error('m'), { message: {}, stack: 7 });"],
    ["a long error", "throw new Error('\\ud800'.repeat(1_000_000));"],
    [
      "something from an entrypoint that does not begin",
      "",
      'export default class { constructor() { throw new Error("c"); } fetch() {} }',
    ],
    ["a value that is no response", "return 7;"],
    ["a rejected promise", "ctx.waitUntil(Promise.reject(new Proxy({}, {}))); return new Response();"],
  ])("that throws %s is shown as an exception", async (_what, body, whole = "") => {
    const run = await result(whole === "" ? fetching(body) : whole);
    expect(run.outcome).toBe("exception");
    expect(run.exceptions.length).toBeGreaterThan(0);
    for (const { name, message } of run.exceptions as { name: string; message: string }[]) {
      expect(typeof name).toBe("string");
      expect(message.isWellFormed()).toBe(true);
      expect(message.length).toBeLessThanOrEqual(8 * 1024);
    }
  });

  it("whose response stream throws is shown as broken off", async () => {
    const run = await result(
      fetching(`let n = 0; return new Response(new ReadableStream({ pull(c) {
        if (n++ < 3) c.enqueue(new TextEncoder().encode("part ")); else c.error(new Error("torn")); } }));`),
    );
    expect(run.outcome).toBe("exception");
    expect(run.response?.is_truncated ?? true).toBe(true);
  });

  it("that replaces everything it can reach ends, too", async () => {
    const run = await preview(
      fetching(`for (const of of [Promise, Map, Set, Array, String, Request, Response, Headers, JSON])
          for (const name of Object.getOwnPropertyNames(of.prototype ?? of))
            try { (of.prototype ?? of)[name] = () => { throw new Error("replaced"); }; } catch {}
        console.log("replaced"); return new Response("x");`),
      { metadata: { timeout_ms: 1000 } },
    );
    expect([200, 400]).toContain(run.status);
    expect(running()).toBe(0);
  });

  it("cannot use the names of the platform's own messages", async () => {
    const run = await result(
      fetching(`await fetch("${outside.url}/", { method: "POST", body: '{"logs":[],"exceptions":[]}',
          headers: { "x-selvedge-event": "trace", "x-selvedge-run": "other" } });
        console.log("still here"); return new Response("x");`),
    );
    expect(run).toMatchObject({ outcome: "ok", logs: [{ message: ["still here"] }], subrequests: 1 });
  });

  it("that makes too many subrequests gets them refused", async () => {
    const run = await result(
      fetching(`let n = 0; try { for (;;) { await (await fetch("${outside.url}/")).text(); n++; } }
        catch (error) { return new Response(n + " " + error.message); }`),
      { metadata: { limits: { subrequests: 3 } } },
    );
    expect(run.response.body).toBe("3 Too many subrequests.");
  });
});

describe("load has an owner", () => {
  it("an account has two previews at once, and another account has its own", async () => {
    const made = await hosting.call("POST", "/accounts", { name: "another", type: "standard" });
    const account = (made.body.result as { id: string }).id;
    const upload = await fetch(`${hosting.ready.api}/accounts/${account}/workers/scripts/theirs`, {
      method: "PUT",
      headers: { authorization: `Bearer ${ownerToken}` },
      body: uploadForm(deployed),
    });
    expect(upload.status).toBe(200);
    const theirs = { script: "theirs", account };
    const own = [await holding(), await holding()];
    expect((await preview(deployed)).status).toBe(429);
    const mark = fetching(
      'const before = globalThis.mark; globalThis.mark = env.KEY ?? "none"; return new Response(String(before) + " " + globalThis.mark);',
    );
    expect((await result(mark, theirs)).response.body).toBe("undefined none");
    const others = [await holding(theirs), await holding(theirs)];
    const third = await hosting.call("POST", "/accounts", { name: "third", type: "standard" });
    const free = (third.body.result as { id: string }).id;
    await fetch(`${hosting.ready.api}/accounts/${free}/workers/scripts/theirs`, {
      method: "PUT",
      headers: { authorization: `Bearer ${ownerToken}` },
      body: uploadForm(deployed),
    });
    const full = await preview(deployed, { script: "theirs", account: free });
    expect(full.status).toBe(429);
    expect(full.body.errors[0]!.message).toContain("installation");
    for (const { release, ended } of [...own, ...others]) {
      release();
      expect((await ended).body.result.response.body).toBe("released");
    }
    expect((await result(mark)).response.body).toBe("undefined s3cret");
    expect(running()).toBe(0);
  });

  it("a preview ends with the connection of its caller", async () => {
    const controller = new AbortController();
    const { ended } = await holding({ signal: controller.signal });
    controller.abort();
    await expect(ended).rejects.toThrow();
    await vi.waitFor(() => expect(running()).toBe(0), longer({}));
  });

  it("a server that stops ends its previews, and says so", async () => {
    const stopping = await startHosting({ privateNetworks: "all" });
    await stopping.deploy("shop", deployed);
    const { ended } = await holding({ of: stopping });
    await stopping.close(10_000);
    const { status, body } = await ended;
    expect(status).toBe(503);
    expect(body.errors[0]!.message).toBe("The preview was ended: the server is stopping");
    expect(running(stopping)).toBe(0);
  });
});
