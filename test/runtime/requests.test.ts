import { Readable } from "node:stream";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { ownerToken } from "../helpers/server.ts";
import { startHosting, startOutside, uploadForm, type Hosting, type Outside } from "./platform.ts";

let hosting: Hosting;
let outside: Outside;
/** Answers that the origin holds back until the test releases them. */
const held = new Map<string, () => void>();
let zone: string;

beforeAll(async () => {
  hosting = await startHosting({ privateNetworks: "all" });
  outside = await startOutside((request, response) => {
    if (request.url === "/held") held.set(request.url, () => response.end("let go"));
    else if (request.method === "POST") request.pipe(response);
    else
      response.end(
        `origin ${request.headers.host} ${request.url} ${String(request.headers["x-added"] ?? "")}`,
      );
  });
  zone = await hosting.createZone("site.example", outside.port);
});
afterAll(async () => {
  await outside.close();
  await hosting.close(0);
});

const route = async (pattern: string, script: string | null): Promise<void> => {
  const { status, body } = await hosting.call("POST", `/zones/${zone}/workers/routes`, {
    pattern,
    ...(script === null ? {} : { script }),
  });
  expect(status, JSON.stringify(body)).toBe(200);
};

/** A request whose body and answer the test sends and reads chunk by chunk. */
function open(
  script: string,
  method: string,
): Promise<{ write(text: string): void; end(): void; answer: Promise<IncomingMessage> }> {
  return new Promise((resolve) => {
    const outgoing = httpRequest(`${hosting.ready.edge}/`, {
      method,
      headers: { host: hosting.hostOf(script) },
      agent: false,
    });
    const answer = new Promise<IncomingMessage>((answered, failed) => {
      outgoing.on("response", answered).on("error", failed);
    });
    outgoing.flushHeaders();
    resolve({ write: (text) => void outgoing.write(text), end: () => void outgoing.end(), answer });
  });
}

describe("bodies", () => {
  test("stream both ways at the same time", async () => {
    await hosting.deploy(
      "upper",
      `export default { fetch: ({ body }) => new Response(body
        .pipeThrough(new TextDecoderStream())
        .pipeThrough(new TransformStream({ transform: (text, out) => out.enqueue(text.toUpperCase()) }))
        .pipeThrough(new TextEncoderStream())) };`,
    );
    const exchange = await open("upper", "POST");
    exchange.write("first");
    const answer = (await exchange.answer).setEncoding("utf8");
    const chunks = answer[Symbol.asyncIterator]() as AsyncIterator<string>;
    // The first chunk comes back before the second one is sent.
    expect((await chunks.next()).value).toBe("FIRST");
    exchange.write("second");
    expect((await chunks.next()).value).toBe("SECOND");
    exchange.end();
    expect((await chunks.next()).done).toBe(true);
  });

  test("of many megabytes pass through a dispatcher and a service", async () => {
    const bytes = Buffer.alloc(8 * 1024 * 1024, "0123456789abcdef");
    await hosting.createNamespace("large");
    await hosting.deployCustomer(
      "large",
      "echo",
      `export default { fetch: ({ body }) => new Response(body) };`,
    );
    await hosting.deploy("to-echo", {
      code: `export default { fetch: (request, env) => env.NS.get("echo").fetch(request) };`,
      bindings: [{ type: "dispatch_namespace", name: "NS", namespace: "large" }],
    });
    const { status, body } = await hosting.ask("to-echo", "/", {
      method: "POST",
      body: Readable.from([bytes]),
    });
    expect(status).toBe(200);
    expect(body.length).toBe(bytes.length);
  });

  test("are fetched while a response is read", async () => {
    await hosting.deploy(
      "pulling",
      `export default { fetch() {
        let count = 0;
        return new Response(new ReadableStream({ async pull(out) {
          if (++count > 2) return out.close();
          const text = await (await fetch("${outside.url}/part" + count)).text();
          out.enqueue(new TextEncoder().encode(text + ";"));
        } }));
      } };`,
    );
    expect((await hosting.ask("pulling")).body).toMatch(/\/part1 ;.*\/part2 ;/);
  });
});

describe("after the answer", () => {
  test("promises passed to waitUntil go on", async () => {
    await hosting.deploy(
      "later",
      `import { waitUntil } from "cloudflare:workers";
      const later = async (path) => { await scheduler.wait(20); await fetch("${outside.url}" + path); };
      export default { fetch(request, env, ctx) {
        ctx.waitUntil(later("/waited"));
        waitUntil(later("/waited-too"));
        ctx.waitUntil(Promise.reject(new Error("nobody sees it")));
        return new Response("answered");
      } };`,
    );
    expect((await hosting.ask("later")).body).toBe("answered");
    await vi.waitFor(() =>
      expect(outside.seen).toEqual(expect.arrayContaining(["GET /waited", "GET /waited-too"])),
    );
  });
});

describe("a failing script", () => {
  test.each([
    ["throws", `throw new Error("secret of the script")`, 500, 1101, "Worker threw exception"],
    ["throws no error", `throw "text"`, 500, 1101, "Worker threw exception"],
    ["answers with no response", `return 5`, 500, 1101, "Worker threw exception"],
    ["never answers", `return new Promise(() => {})`, 500, 1101, "Worker threw exception"],
    ["never ends", `for (;;) {}`, 503, 1102, "Worker exceeded resource limits"],
    [
      "eats memory",
      `const all = []; for (;;) all.push(new Uint8Array(1e6).fill(1))`,
      503,
      1102,
      "Worker exceeded resource limits",
    ],
    [
      "has too many headers",
      `return new Response("", { headers: Array.from({ length: 200 }, (_, i) => ["x-" + i, "v".repeat(1000)]) })`,
      500,
      1101,
      "Worker threw exception",
    ],
  ])("that %s is shown as such", async (what, body, status, code, title) => {
    const name = what.replaceAll(" ", "-");
    await hosting.deploy(name, {
      code: `export default { fetch() { ${body}; } };`,
      metadata: { limits: { cpu_ms: 50 } },
    });
    // A visitor from elsewhere; visitors of this machine see exceptions.
    const elsewhere = { "x-forwarded-for": "192.0.2.1" };
    const response = await hosting.ask(name, "/", { headers: elsewhere });
    expect(response.status).toBe(status);
    expect(response.body).toContain(`error ${code}`);
    expect(response.body).toContain(title);
    expect(response.body).not.toContain("secret");
    const asJson = await hosting.ask(name, "/", {
      headers: { ...elsewhere, accept: "application/json" },
    });
    expect(asJson.headers["content-type"]).toBe("application/json");
    expect(JSON.parse(asJson.body)).toMatchObject({ error: { code, title } });
    expect(asJson.body).not.toContain("secret");
  });

  test("passes its request to the origin after passThroughOnException", async () => {
    await hosting.deploy(
      "open",
      `export default { async fetch(request, env, ctx) { ctx.passThroughOnException(); await fetch("${outside.url}/"); throw new Error("after all"); } };`,
    );
    await hosting.deploy(
      "open-class",
      `import { WorkerEntrypoint } from "cloudflare:workers";
      export default class extends WorkerEntrypoint { fetch() { this.ctx.passThroughOnException(); throw new Error("after all"); } }`,
    );
    await hosting.deploy(
      "open-read",
      `export default { async fetch(request, env, ctx) { ctx.passThroughOnException(); await request.text(); throw new Error("read already"); } };`,
    );
    await route("open.site.example/*", "open");
    await route("class.site.example/*", "open-class");
    await route("read.site.example/*", "open-read");
    expect(await hosting.askHost("open.site.example", "/a?b")).toMatchObject({
      status: 200,
      body: "origin open.site.example /a?b ",
    });
    expect(await hosting.askHost("class.site.example", "/a")).toMatchObject({
      body: "origin class.site.example /a ",
    });
    const posted = await hosting.askHost("open.site.example", "/", { method: "POST", body: "whole" });
    expect(posted).toMatchObject({ status: 200, body: "whole" });
    const read = await hosting.askHost("read.site.example", "/", { method: "POST", body: "gone" });
    expect(read.status).toBe(500);
    // A script's own host name has no origin behind it.
    expect(await hosting.ask("open")).toMatchObject({ status: 500 });
  });
});

describe("routes", () => {
  const saying = (word: string): string =>
    `export default { async fetch(request) {
      const inner = new Request(request);
      inner.headers.set("x-added", "by ${word}");
      return fetch(inner);
    } };`;

  test("the most specific pattern handles the request; routes may exclude scripts; scripts may fetch the origin", async () => {
    for (const word of ["wide", "narrow", "narrowest"]) await hosting.deploy(word, saying(word));
    await route("*site.example/r/*", "wide");
    await route("www.site.example/r/*", "narrow");
    await route("www.site.example/r/deep/*", "narrowest");
    await route("www.site.example/r/none/*", null);
    const added = async (host: string, path: string): Promise<string> =>
      (await hosting.askHost(host, path)).body;
    expect(await added("site.example", "/r/x")).toBe("origin site.example /r/x by wide");
    expect(await added("www.site.example", "/r/x?q")).toBe("origin www.site.example /r/x?q by narrow");
    expect(await added("www.site.example", "/r/deep/x")).toBe(
      "origin www.site.example /r/deep/x by narrowest",
    );
    expect(await added("www.site.example", "/r/none/x")).toBe("origin www.site.example /r/none/x ");
    expect(await added("www.site.example", "/elsewhere")).toBe("origin www.site.example /elsewhere ");
  });

  test("snippets come before scripts", async () => {
    await hosting.deploy(
      "last",
      `export default { fetch: ({ headers }) => new Response("script saw " + headers.get("x-snippet")) };`,
    );
    await route("snipped.site.example/*", "last");
    const form = new FormData();
    form.set("metadata", JSON.stringify({ main_module: "snippet.js" }));
    const code = `export default { async fetch(request) {
      const inner = new Request(request);
      inner.headers.set("x-snippet", "the snippet");
      const answer = await fetch(inner);
      return new Response("[" + await answer.text() + "]");
    } };`;
    form.set("files", new File([code], "snippet.js", { type: "application/javascript+module" }));
    const put = await fetch(`${hosting.ready.api}/zones/${zone}/snippets/before`, {
      method: "PUT",
      headers: { authorization: `Bearer ${ownerToken}` },
      body: form,
    });
    expect(put.status).toBe(200);
    await hosting.call("PUT", `/zones/${zone}/snippets/snippet_rules`, {
      rules: [{ snippet_name: "before", expression: 'http.host eq "snipped.site.example"', enabled: true }],
    });
    expect(await hosting.askHost("snipped.site.example")).toMatchObject({ body: "[script saw the snippet]" });
  });
});

describe("versions", () => {
  test("a request in flight finishes on the version that it began with", async () => {
    await hosting.deploy(
      "changing",
      `export default { async fetch() { await fetch("${outside.url}/held"); return new Response("old"); } };`,
    );
    const before = hosting.ask("changing");
    await vi.waitFor(() => expect(held.has("/held")).toBe(true));
    await hosting.deploy("changing", `export default { fetch: () => new Response("new") };`);
    expect((await hosting.ask("changing")).body).toBe("new");
    held.get("/held")!();
    expect((await before).body).toBe("old");
  });

  test("two of them share the requests by the deployment's percentages", async () => {
    const scripts = `/accounts/${hosting.account}/workers/scripts/shared`;
    const code = (word: string): string => `export default { fetch: () => new Response("${word}") };`;
    await hosting.deploy("shared", code("one"));
    const uploaded = await fetch(`${hosting.ready.api}${scripts}/versions`, {
      method: "POST",
      headers: { authorization: `Bearer ${ownerToken}` },
      body: uploadForm(code("two")),
    });
    const { result } = (await uploaded.json()) as { result: { id: string } };
    expect((await hosting.ask("shared")).body).toBe("one");
    const list = await hosting.call("GET", `${scripts}/deployments`);
    const [{ version_id: first }] = list.body.result.deployments[0].versions as [{ version_id: string }];
    const deployed = await hosting.call("POST", `${scripts}/deployments`, {
      strategy: "percentage",
      versions: [
        { version_id: first, percentage: 30 },
        { version_id: result.id, percentage: 70 },
      ],
    });
    expect(deployed.status, JSON.stringify(deployed.body)).toBe(200);
    const counts: Record<string, number> = { one: 0, two: 0 };
    for (let i = 0; i < 200; i++) {
      const { body } = await hosting.ask("shared");
      counts[body]!++;
    }
    // With 200 requests at 30 %, fewer than 25 or more than 100 happen once in 10^12.
    expect(counts["one"]).toBeGreaterThan(25);
    expect(counts["one"]).toBeLessThan(100);
  });
});

describe("request.cf", () => {
  const code = `export default { fetch: ({ cf, headers }) => Response.json({ cf: cf ?? null, ray: headers.get("cf-ray") }) };`;
  const cfOf = async (script: string): Promise<unknown> =>
    (JSON.parse((await hosting.ask(script)).body) as { cf: unknown }).cf;

  test("is there for scripts of the account, and for customers of trusted namespaces only", async () => {
    await hosting.deploy("seeing", code);
    expect(await cfOf("seeing")).toMatchObject({ colo: "DEV", httpProtocol: "HTTP/1.1" });
    await hosting.createNamespace("trusted", { trusted_workers: true });
    await hosting.createNamespace("untrusted");
    for (const namespace of ["trusted", "untrusted"]) {
      await hosting.deployCustomer(namespace, "customer", code);
      await hosting.deploy(`to-${namespace}`, {
        code: `export default { fetch: (request, env) => env.NS.get("customer").fetch(request) };`,
        bindings: [{ type: "dispatch_namespace", name: "NS", namespace }],
      });
    }
    expect(await cfOf("to-trusted")).toMatchObject({ colo: "DEV" });
    expect(await cfOf("to-untrusted")).toBe(null);
  });

  test.each(["2026-11-01", "2023-01-01", "2021-11-02"])(
    "cannot be changed, but in copies it can, for scripts of %s",
    async (compatibility_date) => {
      await hosting.deploy("copying", {
        code: `export default { fetch(request) {
          const copy = new Request(request);
          copy.cf.colo = "copied";
          const others = [new Request(request, { method: "POST" }), request.clone(), new Request("http://x/", request)];
          const own = [new Request("http://x/").cf, new Request("http://x/", { cf: { colo: "own" } }).cf.colo];
          return Response.json([request.cf === request.cf, Object.isFrozen(request.cf), request.cf.colo, copy.cf.colo, others.map(({ cf }) => cf.colo), own, Object.keys(request.cf).includes("selvedgeRun")]);
        } };`,
        metadata: { compatibility_date },
      });
      expect(JSON.parse((await hosting.ask("copying")).body)).toEqual([
        true,
        true,
        "DEV",
        "copied",
        ["DEV", "DEV", "DEV"],
        [null, "own"],
        false,
      ]);
    },
  );
});
