import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ownerToken, type ApiResponse } from "../helpers/server.ts";
import { uploadForm } from "../runtime/platform.ts";
import { deployed, fetching, PreviewHarness } from "./preview-harness.ts";

/** Code that is not deployed runs for one request, in a process of its own, and nothing of it stays. */
let at: PreviewHarness;
beforeAll(async () => {
  at = await PreviewHarness.start();
});
afterAll(async () => at?.[Symbol.asyncDispose]());

describe("a preview", () => {
  it("runs with the script's bindings, shows what it did, and leaves visitors the deployed version", async () => {
    const versions = async (): Promise<unknown> =>
      (await at.hosting.call("GET", `/accounts/${at.hosting.account}/workers/scripts/shop/versions`)).body
        .result;
    const before = await versions();
    const run = await at.result(
      fetching(`
        globalThis.secret = "left by a preview";
        console.log("key", env.KEY.length, { mode: env.MODE });
        console.error(new Error("only logged"));
        await env.STORE.put("note", "of a preview");
        const text = await (await fetch("${at.outside.url}/", { headers: { "x-from": "preview" } })).text();
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
    expect((await at.hosting.ask("shop")).body).toBe("deployed ");
    // Bindings act on the account's data.
    expect((await at.hosting.ask("shop", "/stored")).body).toBe("of a preview");
    expect(await versions()).toEqual(before);
    expect(at.running()).toBe(0);
  });

  it("passes the request on as the edge would", async () => {
    const echo = fetching(`return Response.json({
      method: request.method, url: request.url, headers: Object.fromEntries(request.headers),
      body: [...new Uint8Array(await request.arrayBuffer())] });`);
    const run = await at.result(echo, {
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
    const { status, body } = await at.preview(deployed, { request: { headers: { [name]: "1" } } });
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
    const { status, body } = await at.preview(deployed, asked);
    expect(status).toBe(400);
    expect(JSON.stringify(body.errors)).toContain(expected);
  });

  it.each(["nothing(); export default {};", "export default {"])(
    "refuses %s as an upload does",
    async (code) => {
      const { status, body } = await at.preview(code);
      const upload = await fetch(
        `${at.hosting.ready.api}/accounts/${at.hosting.account}/workers/scripts/other`,
        {
          method: "PUT",
          headers: { authorization: `Bearer ${ownerToken}` },
          body: uploadForm(code),
        },
      );
      expect(status).toBe(400);
      expect(body.errors).toEqual(((await upload.json()) as ApiResponse["body"]).errors);
      expect(at.running()).toBe(0);
    },
  );

  it("shows bytes that are no text in base64, and all copies of a header", async () => {
    const run = await at.result(
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
    const given = await at.result(names, { metadata: { bindings: [text] } });
    expect(JSON.parse(given.response.body)).toEqual(["KEY", "NEW"]);
    const without = await at.result(names, { metadata: { bindings: [text], keep_bindings: [] } });
    expect(JSON.parse(without.response.body)).toEqual(["NEW"]);
  });

  it("runs scripts with a fetch listener, and with classes", async () => {
    const listener = `addEventListener("fetch", (event) => event.respondWith(new Response("old form " + MODE)));`;
    const form = uploadForm({ code: { "index.js": listener } });
    const file = new File([listener], "index.js", { type: "application/javascript" });
    form.set("index.js", file);
    form.set("metadata", JSON.stringify({ body_part: "index.js", request: { url: "https://a/" } }));
    const path = `/accounts/${at.hosting.account}/workers/scripts/shop/edge/preview`;
    const response = await fetch(`${at.hosting.ready.api}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${ownerToken}` },
      body: form,
    });
    const { body } = ((await response.json()) as ApiResponse["body"]).result.response as { body: string };
    expect(body).toBe("old form live");
    const run = await at.result(`import { WorkerEntrypoint } from "cloudflare:workers";
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
    await at.hosting.deploy("counting", { code: counter("deployed"), bindings, metadata });
    const run = await at.result(counter("unsaved"), { script: "counting" });
    expect(JSON.parse(run.response.body)).toEqual(["deployed 1", "deployed", "deployed "]);
    const given = await at.result(counter("unsaved"), { script: "counting", metadata: { bindings } });
    expect(JSON.parse(given.response.body)).toEqual(["deployed 2", "deployed", "deployed "]);
    const made = { type: "durable_object_namespace", name: "OTHER", class_name: "Other" };
    const refused = await at.preview(counter("unsaved"), {
      script: "counting",
      metadata: { bindings: [made] },
    });
    expect(refused.status).toBe(400);
    expect(refused.body.errors[0]!.message).toContain('"OTHER"');
  });

  it("dispatches to customers, whose code runs elsewhere", async () => {
    await at.hosting.createNamespace("customers");
    await at.hosting.deployCustomer(
      "customers",
      "one",
      fetching('globalThis.n = (globalThis.n ?? 0) + 1; return new Response("customer " + globalThis.n);'),
    );
    const code = fetching(`const one = env.NS.get("one");
      return new Response(await (await one.fetch("https://a/")).text());`);
    const metadata = { bindings: [{ type: "dispatch_namespace", name: "NS", namespace: "customers" }] };
    expect((await at.result(code, { metadata })).response.body).toBe("customer 1");
    expect((await at.result(code, { metadata })).response.body).toBe("customer 2");
  });

  it("is in the audit log, without headers and bodies", async () => {
    await at.preview(deployed, {
      request: { headers: { authorization: "of-a-visitor" }, body: { plain_text: "text-of-one" } },
    });
    const path = `/accounts/${at.hosting.account}/logs/audit?since=2020-01-01&before=2100-01-01&limit=1000`;
    const { body } = await at.hosting.call("GET", path);
    const entries = (body.result as { raw: { uri?: string } }[]).filter(
      ({ raw }) => raw.uri?.includes("/edge/preview") === true,
    );
    expect(entries.length).toBeGreaterThan(0);
    expect(JSON.stringify(entries)).not.toMatch(/of-a-visitor|text-of-one/);
  });
});
