import type { IncomingMessage, RequestListener } from "node:http";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { ask, askWhole, createZone, listenLocally, type LocalServer } from "./example-platform.ts";

/** Requests and responses pass through a snippet unchanged, unless the snippet changes them. */
const text = "some text, again and again. ".repeat(2000);
const gzipped = gzipSync(text);

const through = (change: string): string =>
  `export default { async fetch(request) { const response = await fetch(request); ${change} } };`;
const snippets = {
  same: through("return response;"),
  header: through(
    `const changed = new Response(response.body, response); changed.headers.set("x-from", "snippet"); return changed;`,
  ),
  read: through("return new Response(await response.text());"),
  upper: through("return new Response((await response.text()).toUpperCase(), response);"),
  cloned: through(
    `const copy = response.clone(); return new Response((await copy.text()).length + " " + (await response.text()).length);`,
  ),
  unread: through("return new Response('mine');"),
  encoded: through(
    `const gzip = new Response(response.body).body.pipeThrough(new CompressionStream("gzip"));
     return new Response(gzip, { headers: { "content-encoding": "gzip" }, encodeBody: "manual" });`,
  ),
  text: `export default { async fetch() { return new Response("grüße 🙂", { headers: { "x-text": "grüße" } }) } };`,
  large: `export default { async fetch() { return new Response("x".repeat(1_000_000)) } };`,
  parts: `export default { async fetch(request) {
    const encoder = new TextEncoder(); let n = 0;
    return new Response(new ReadableStream({ async pull(controller) {
      if (n > 0) await fetch("http://origin.test/wait" + n);
      if (n++ === 2) controller.close(); else controller.enqueue(encoder.encode("part " + n + "\\n"));
    } })) } };`,
  immutable: `export default { async fetch(request) {
    try { request.headers.set("a", "b"); return new Response("changed") }
    catch (error) { const copy = new Request(request); copy.headers.set("a", "b"); return new Response(error.name + " " + copy.headers.get("a")) } } };`,
  echo: `export default { async fetch(request) { return Response.json({ url: request.url, headers: [...request.headers].map(([n]) => n), method: request.method }) } };`,
};

let server: TestServer;
let origin: LocalServer;
let waiting: (() => void)[] = [];
const closed: string[] = [];

const answer: RequestListener = (request, response) => {
  const url = request.url ?? "";
  response.on("close", () => closed.push(url));
  if (url.startsWith("/wait")) waiting.push(() => void response.end("on"));
  else if (url === "/gzip")
    response.writeHead(200, { "content-encoding": "gzip", "content-length": gzipped.length }).end(gzipped);
  else if (url === "/chunked") response.write(text, () => response.end(text));
  else if (url === "/none") response.writeHead(204).end();
  else if (url === "/not-modified") response.writeHead(304, { etag: '"a"' }).end();
  else if (url === "/cookies")
    response.writeHead(200, { "set-cookie": ["a=1", "b=2"], "x-latin": "gr\u00fc\u00dfe" }).end("ok");
  else if (url === "/breaks") {
    response.writeHead(200, { "content-length": 1_000_000 });
    response.write("x".repeat(200_000), () => response.destroy());
  } else if (url === "/large") response.end("y".repeat(3_000_000));
  else response.end(text);
};

beforeAll(async () => {
  origin = await listenLocally(answer);
  server = await startTestServer({ privateNetworks: "all", snippetCpuMs: 2000 });
  for (const [name, code] of Object.entries(snippets)) {
    const own = code.replaceAll("http://origin.test", origin.url);
    await createZone(server.ready.api, `${name}.example`, origin.port, [{ name, code: own }]);
  }
});
afterAll(async () => {
  for (const go of waiting) go();
  await server.close(1000);
  origin.close();
});

const get = (name: keyof typeof snippets, path = "/", method = "GET") =>
  askWhole(server.ready.edge, `${name}.example`, { path, method });
async function raw(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

describe.each(["same", "header"] as const)("a body that the snippet %s does not read", (name) => {
  it("arrives as the origin sent it, compressed or not", async () => {
    const response = await ask(server.ready.edge, `${name}.example`, { path: "/gzip" });
    expect(response.headers).toMatchObject({
      "content-encoding": "gzip",
      "content-length": String(gzipped.length),
    });
    expect(await raw(response)).toEqual(gzipped);
    expect((await get(name, "/chunked")).body).toBe(text + text);
    expect((await get(name, "/large")).body).toHaveLength(3_000_000);
  });

  it("keeps the response's status and headers", async () => {
    expect(await get(name, "/none")).toMatchObject({ status: 204, body: "" });
    expect(await get(name, "/not-modified")).toMatchObject({ status: 304, headers: { etag: '"a"' } });
    expect((await get(name, "/cookies")).headers).toMatchObject({ "set-cookie": ["a=1", "b=2"] });
    const head = await get(name, "/", "HEAD");
    expect([head.status, head.body]).toEqual([200, ""]);
  });

  it("is incomplete when the origin's was", async () => {
    const response = await ask(server.ready.edge, `${name}.example`, { path: "/breaks" });
    await expect(raw(response)).rejects.toThrow("aborted");
  });
});

describe("a body that a snippet reads", () => {
  it("is decompressed for it", async () => {
    expect((await get("read", "/gzip")).body).toBe(text);
    expect((await get("read", "/chunked")).body).toBe(text + text);
    expect((await get("cloned", "/gzip")).body).toBe(`${text.length} ${text.length}`);
    const { headers, body } = await get("upper", "/gzip");
    expect(headers).not.toHaveProperty("content-encoding");
    expect(body).toBe(text.toUpperCase());
  });

  it("may be compressed by it", async () => {
    const response = await ask(server.ready.edge, "encoded.example", {});
    expect(response.headers["content-encoding"]).toBe("gzip");
    expect(gunzipSync(await raw(response)).toString()).toBe(text);
  });

  it("that it cancels is not fetched to its end", async () => {
    closed.length = 0;
    expect((await get("unread", "/endless")).body).toBe("mine");
    await vi.waitFor(() => expect(closed).toEqual(["/endless"]));
  });
});

describe("a response that a snippet creates", () => {
  it("is text in UTF-8", async () => {
    const { body, headers } = await get("text");
    expect(body).toBe("grüße 🙂");
    expect(Buffer.from(String(headers["x-text"]), "latin1").toString()).toBe("grüße");
    expect(headers["content-length"]).toBe(String(Buffer.byteLength(body)));
  });

  it("may be long", async () => {
    expect((await get("large")).body).toBe("x".repeat(1_000_000));
  });

  it("is streamed as it is produced", async () => {
    waiting = [];
    const response = await ask(server.ready.edge, "parts.example", {});
    response.setEncoding("utf8");
    const parts: string[] = [];
    response.on("data", (part: string) => parts.push(part));
    await vi.waitFor(() => expect(parts).toEqual(["part 1\n"]));
    await vi.waitFor(() => expect(waiting).toHaveLength(1));
    waiting[0]!();
    await vi.waitFor(() => expect(parts).toEqual(["part 1\n", "part 2\n"]));
    await vi.waitFor(() => expect(waiting).toHaveLength(2));
    waiting[1]!();
    await new Promise((resolve) => response.once("end", resolve));
  });
});

describe("a request", () => {
  it("cannot be changed, but copied", async () => {
    expect((await get("immutable")).body).toBe("TypeError b");
  });

  it.each(["GET", "OPTIONS", "DELETE", "POST"])("with %s is the same", async (method) => {
    const { body } = await get("echo", "/a%20b/c?d={}&e", method);
    expect(JSON.parse(body)).toMatchObject({
      method,
      url: "http://echo.example/a%20b/c?d={}&e",
      headers: expect.arrayContaining(["host", "cf-connecting-ip", "cf-ray"]),
    });
    expect(body).not.toContain("selvedge");
  });
});
