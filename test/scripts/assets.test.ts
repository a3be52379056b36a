import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { ask, esm, sendAssets, upload } from "./harness.ts";

/** Static assets of scripts and of customers' scripts, deployed in three steps and requested through the edge. */
let server: TestServer;
let base: string;

const files = {
  "/index.html": "<h1>home</h1>",
  "/about.html": "<h1>about</h1>",
  "/large.txt": "x".repeat(5000),
  "/404.html": "<h1>nothing here</h1>",
};

beforeAll(async () => {
  server = await startTestServer();
  base = `/accounts/${server.ready.account_id}`;
});
afterAll(() => server.close(1000));

const sendFiles = async (path: string): Promise<string> => sendAssets(server, path, files);

async function put(path: string, metadata: object, code?: string): Promise<void> {
  const all = {
    compatibility_date: "2026-01-01",
    ...metadata,
    ...(code === undefined ? {} : { main_module: "m.js" }),
  };
  const answer = await upload(server, path, [
    { name: "metadata", content: JSON.stringify(all), type: "application/json" },
    ...(code === undefined ? [] : [{ name: "m.js", filename: "m.js", content: code, type: esm }]),
  ]);
  expect(answer.body.errors).toEqual([]);
}

const worker = `export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    if (url.pathname.startsWith("/api/")) return new Response("api " + url.pathname);
    if (url.pathname === "/relative") return env.ASSETS.fetch("/large.txt").catch((error) => new Response(String(error)));
    if (url.pathname === "/read") return new Response((await (await env.ASSETS.fetch(new URL("/large.txt", url))).text()).length);
    const response = await env.ASSETS.fetch(request);
    const answer = new Response(response.body, response);
    answer.headers.set("x-through", "script");
    return answer;
  },
};`;
const binding = { bindings: [{ type: "assets", name: "ASSETS" }] };

describe("a site without a script", () => {
  beforeAll(async () => {
    const path = `${base}/workers/scripts/site`;
    const assets = { jwt: await sendFiles(path), config: { not_found_handling: "404-page" } };
    await put(path, { assets });
  });

  it("is served, and never enters an isolate", async () => {
    expect(await ask(server, "site")).toMatchObject({ status: 200, body: files["/index.html"] });
    expect(await ask(server, "site", "/about.html?q=1")).toMatchObject({
      status: 307,
      headers: { location: "/about?q=1" },
    });
    const about = await ask(server, "site", "/about");
    expect(about).toMatchObject({
      body: files["/about.html"],
      headers: { "content-type": "text/html; charset=utf-8", "cf-ray": expect.any(String) },
    });
    expect(
      await ask(server, "site", "/about", { "if-none-match": about.headers.etag as string }),
    ).toMatchObject({ status: 304 });
    expect(await ask(server, "site", "/large.txt", { range: "bytes=0-9" })).toMatchObject({
      status: 206,
      body: "x".repeat(10),
    });
    expect(await ask(server, "site", "/nothing")).toMatchObject({ status: 404, body: files["/404.html"] });
  });
});

describe("a site with a script", () => {
  it("passes requests without a file to the script", async () => {
    const path = `${base}/workers/scripts/both`;
    await put(path, { assets: { jwt: await sendFiles(path) }, ...binding }, worker);
    const home = await ask(server, "both");
    expect([home.body, home.headers["x-through"]]).toEqual([files["/index.html"], undefined]);
    expect((await ask(server, "both", "/api/x")).body).toBe("api /api/x");
    expect((await ask(server, "both", "/read", { "accept-encoding": "gzip, br" })).body).toBe("5000");
    // As for every binding of workerd, the URL must be absolute.
    expect((await ask(server, "both", "/relative")).body).toBe("TypeError: Invalid URL: /large.txt");
  });

  it("comes after it, where that is asked for", async () => {
    const path = `${base}/workers/scripts/first`;
    const assets = { jwt: await sendFiles(path), config: { run_worker_first: ["/*", "!/about"] } };
    await put(path, { assets, ...binding }, worker);
    const home = await ask(server, "first");
    expect(home).toMatchObject({ body: files["/index.html"], headers: { "x-through": "script" } });
    expect((await ask(server, "first", "/about")).headers["x-through"]).toBeUndefined();
    const redirect = await ask(server, "first", "/about.html");
    expect(redirect).toMatchObject({ status: 307, headers: { location: "/about", "x-through": "script" } });
    const packed = await ask(server, "first", "/large.txt", { "accept-encoding": "gzip" });
    expect(packed.headers).toMatchObject({ "content-encoding": "gzip", "x-through": "script" });
    const etag = (await ask(server, "first", "/large.txt")).headers.etag as string;
    expect((await ask(server, "first", "/large.txt", { "if-none-match": etag })).status).toBe(304);
  });

  it("keeps its files over uploads that keep them, and settings", async () => {
    const path = `${base}/workers/scripts/both`;
    await put(path, { keep_assets: true, ...binding }, worker);
    expect((await ask(server, "both")).body).toBe(files["/index.html"]);
    await upload(server, `${path}/settings`, [{ name: "settings", content: '{"tags":["x"]}' }], "PATCH");
    expect((await ask(server, "both", "/read")).body).toBe("5000");
    await put(path, {}, 'export default { fetch: () => new Response("no files") };');
    expect((await ask(server, "both")).body).toBe("no files");
  });
});

it("a customer's site, dispatched", async () => {
  await server.call("POST", `${base}/edge/dispatch/namespaces`, { name: "sites" });
  const path = `${base}/edge/dispatch/namespaces/sites/scripts/tenant`;
  await put(path, { assets: { jwt: await sendFiles(path) }, ...binding }, worker);
  const dispatcher = "export default { fetch: (request, env) => env.SITES.get('tenant').fetch(request) };";
  await put(
    `${base}/workers/scripts/dispatcher`,
    { bindings: [{ type: "dispatch_namespace", name: "SITES", namespace: "sites" }] },
    dispatcher,
  );
  expect((await ask(server, "dispatcher", "/about")).body).toBe(files["/about.html"]);
  expect((await ask(server, "dispatcher", "/api/y")).body).toBe("api /api/y");
  expect((await ask(server, "dispatcher", "/read")).body).toBe("5000");
});
