import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { connect, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { toFile } from "cloudflare";
import { WebSocket, WebSocketServer } from "ws";
import { ConfigError, loadConfig } from "../../src/platform/config/config.ts";
import { fieldNames } from "../../src/platform/access-log/declaration.ts";
import { LineWriter } from "../../src/platform/access-log/line-writer.ts";
import { writeLatin1 } from "../../src/platform/access-log/write-bytes.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { requestEdge } from "../helpers/edge-request.ts";

type Line = Record<string, unknown> & { ClientRequestURI?: string; ClientRequestPath?: string };

const folder = mkdtempSync(join(tmpdir(), "selvedge-access-"));
const file = join(folder, "access.log");
const host = "www.log.example";
let server: TestServer;
let origin: Server;

const linesOf = (path: string): Line[] =>
  readFileSync(path, "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);
/** The one line of a request, once it is written. */
async function lineOf(path: string): Promise<Line> {
  const found = (): Line[] =>
    linesOf(file).filter(({ ClientRequestURI }) => ClientRequestURI?.startsWith(path));
  await written(found);
  return found()[0]!;
}
/** Waits until a line is there, without waiting for the next regular write. */
const written = (lines: () => Line[]): Promise<void> =>
  expect
    .poll(async () => {
      await Promise.all(server.services.accessLogWriters.map((writer) => writer.flush()));
      return lines();
    })
    .toHaveLength(1);

beforeAll(async () => {
  server = await startTestServer({
    accessLog: file,
    accessLogFields: fieldNames,
    accessLogRequestHeaders: ["X-Kind", "x-none"],
    accessLogResponseHeaders: ["X-Made"],
    accessLogTimestamps: "unixnano",
    apiAccessLog: join(folder, "api.log"),
    edgeTlsListen: "127.0.0.1:0",
  });
  origin = createServer((request: IncomingMessage, response) => {
    if (request.url!.startsWith("/wait/")) return; // never answered
    response.writeHead(request.url === "/bad" ? 502 : 200, {
      "content-type": "text/x-log",
      "x-made": "here",
    });
    response.end("a body of 20 bytes..");
  });
  const sockets = new WebSocketServer({ server: origin });
  sockets.on("connection", (socket) => socket.close(1000));
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  const { port } = origin.address() as AddressInfo;
  const id = await server.newZone("log.example");
  for (const name of ["www", "script"])
    await server.call("POST", `/zones/${id}/dns_records`, {
      type: "A",
      name,
      content: "127.0.0.1",
      proxied: true,
    });
  await server.call("PUT", `/zones/${id}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [{ action: "route", expression: "true", action_parameters: { origin: { port } } }],
  });
});
afterAll(async () => {
  origin.closeAllConnections();
  origin.close();
  await server.close(0);
  rmSync(folder, { recursive: true });
});

it("has the fields of the public data set for a proxied request, with the credentials of its query left out", async () => {
  const headers = {
    "x-kind": 'a "quoted" w\u00f6rd',
    "user-agent": "tester/1",
    authorization: "Bearer marked-secret",
    cookie: "session=marked-secret",
    referer: "http://before.example/?token=marked-secret",
  };
  const beforeMs = Date.now();
  const { headers: answered } = await requestEdge(
    server.ready.edge,
    host,
    "/a?x=1&sig=marked-secret&y=2",
    headers,
  );
  const line = await lineOf("/a?");
  expect(line).toMatchObject({
    ClientIP: "127.0.0.1",
    ClientRequestHost: host,
    ClientRequestMethod: "GET",
    ClientRequestPath: "/a",
    ClientRequestURI: "/a?x=1&sig=REDACTED&y=2",
    ClientRequestProtocol: "HTTP/1.1",
    ClientRequestReferer: "http://before.example/?token=REDACTED",
    ClientRequestScheme: "http",
    ClientRequestUserAgent: "tester/1",
    ClientSSLProtocol: "none",
    EdgeColoCode: "DEV",
    EdgeResponseBodyBytes: 20,
    EdgeResponseContentType: "text/x-log",
    EdgeResponseStatus: 200,
    OriginIP: "127.0.0.1",
    OriginResponseStatus: 200,
    RayID: String(answered["cf-ray"]).split("-")[0],
    RequestHeaders: { "x-kind": 'a "quoted" w\u00f6rd' },
    ResponseHeaders: { "x-made": "here" },
    WorkerSubrequest: false,
    ZoneName: "log.example",
  });
  expect(line).not.toHaveProperty("WorkerScriptName");
  expect(readFileSync(file, "utf8")).not.toContain("marked-secret");
  const [startMs, endMs] = ["EdgeStartTimestamp", "EdgeEndTimestamp"].map((name) => Number(line[name]) / 1e6);
  expect(startMs).toBeGreaterThanOrEqual(beforeMs - 1);
  expect(endMs).toBeGreaterThanOrEqual(startMs!);
  expect(endMs).toBeLessThanOrEqual(Date.now() + 1);
});

it("has a line for every way a request can end", async () => {
  await requestEdge(server.ready.edge, host, "/bad");
  expect(await lineOf("/bad")).toMatchObject({ EdgeResponseStatus: 502, OriginResponseStatus: 502 });

  await requestEdge(server.ready.edge, "www.unknown.example", "/unknown");
  const unknown = await lineOf("/unknown");
  expect(unknown).toMatchObject({ EdgeResponseStatus: 404, ClientRequestHost: "www.unknown.example" });
  expect(unknown).not.toHaveProperty("ZoneName");
  expect(unknown).not.toHaveProperty("OriginIP");

  const socket = new WebSocket(`${server.ready.edge.replace("http", "ws")}/socket`, { headers: { host } });
  await new Promise((resolve) => socket.on("close", resolve));
  expect(await lineOf("/socket")).toMatchObject({ EdgeResponseStatus: 101, OriginResponseStatus: 101 });

  const refused = new WebSocket(`${server.ready.edge.replace("http", "ws")}/refused`, {
    headers: { host: "www.unknown.example" },
  });
  await new Promise((resolve) => refused.on("error", resolve));
  expect(await lineOf("/refused")).toMatchObject({ EdgeResponseStatus: 404 });

  const abandoned = connect(Number(new URL(server.ready.edge).port), "127.0.0.1");
  abandoned.write(`POST /abandoned HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 10\r\n\r\nhalf`);
  await new Promise((resolve) => setImmediate(resolve));
  abandoned.end();
  expect(await lineOf("/abandoned")).toMatchObject({ ClientRequestMethod: "POST" });
});

it("has status 499 for a visitor that left before the head of the answer, over HTTP/1.1 and HTTP/2", async () => {
  const arrived = once(origin, "request");
  const left = connect(Number(new URL(server.ready.edge).port), "127.0.0.1");
  left.write(`GET /wait/left HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
  await arrived;
  left.destroy();
  expect(await lineOf("/wait/left")).toMatchObject({ EdgeResponseStatus: 499, EdgeResponseBodyBytes: 0 });

  const session = connectHttp2(server.ready.edge_tls!, {
    ca: readFileSync(server.ready.tls_authority!),
    servername: host,
  });
  const again = once(origin, "request");
  const stream = session.request({ ":authority": host, ":path": "/wait/reset" });
  stream.on("error", () => {});
  await again;
  stream.close(8); // CANCEL
  expect(await lineOf("/wait/reset")).toMatchObject({ EdgeResponseStatus: 499 });
  session.close();
});

it("counts the body of an answer over HTTP/2, and knows the connection's protocol", async () => {
  const session = connectHttp2(server.ready.edge_tls!, {
    ca: readFileSync(server.ready.tls_authority!),
    servername: host,
  });
  const stream = session.request({ ":authority": host, ":path": "/over-http2" });
  stream.resume();
  await once(stream, "end");
  expect(await lineOf("/over-http2")).toMatchObject({
    ClientRequestProtocol: "HTTP/2",
    ClientRequestScheme: "https",
    ClientSSLProtocol: "TLSv1.3",
    ClientSSLCipher: expect.stringMatching(/^AEAD-/),
    EdgeResponseBodyBytes: 20,
    EdgeResponseContentType: "text/x-log",
    EdgeTimeToFirstByteMs: expect.any(Number),
  });
  session.close();
});

it("names the script that answered, and says why one did not", async () => {
  const code = `export default { fetch(request) {
    if (request.url.endsWith("/throws")) throw new Error("on purpose");
    return new Response("from the script");
  } }`;
  const [account] = (await server.call("GET", "/accounts")).body.result as { id: string }[];
  await server.client.workers.scripts.update("logged", {
    account_id: account!.id,
    metadata: { main_module: "main.js", compatibility_date: "2025-01-01" },
    files: [await toFile(Buffer.from(code), "main.js", { type: "application/javascript+module" })],
  });
  const zones = (await server.call("GET", "/zones?name=log.example")).body.result as { id: string }[];
  await server.call("POST", `/zones/${zones[0]!.id}/workers/routes`, {
    pattern: "script.log.example/*",
    script: "logged",
  });
  await requestEdge(server.ready.edge, "script.log.example", "/answers");
  expect(await lineOf("/answers")).toMatchObject({
    EdgeResponseBodyBytes: 15,
    WorkerScriptName: "logged",
    WorkerStatus: "ok",
    WorkerWallTimeUs: expect.any(Number),
  });
  await requestEdge(server.ready.edge, "script.log.example", "/throws");
  expect(await lineOf("/throws")).toMatchObject({ WorkerStatus: "exception", EdgeResponseStatus: 500 });
});

it("logs the calls of the management API without their credentials", async () => {
  await server.call("GET", "/user/tokens/verify");
  const calls = (): Line[] =>
    linesOf(join(folder, "api.log")).filter(({ ClientRequestPath }) =>
      ClientRequestPath?.endsWith("/user/tokens/verify"),
    );
  await written(calls);
  expect(calls()[0]).toMatchObject({ ClientRequestMethod: "GET", EdgeResponseStatus: 200 });
  expect(readFileSync(join(folder, "api.log"), "utf8")).not.toContain("owner-token-for-tests");
});

it("goes on in a new file after a rotation, and only its owner may read it", async () => {
  await requestEdge(server.ready.edge, host, "/before-rotation");
  await lineOf("/before-rotation");
  const rotated = join(folder, "access.log.1");
  renameSync(file, rotated);
  await server.reload();
  await requestEdge(server.ready.edge, host, "/after-rotation");
  await lineOf("/after-rotation");
  expect(readFileSync(rotated, "utf8")).not.toContain("/after-rotation");
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

it("refuses fields that do not exist and headers that carry credentials", () => {
  for (const wrong of [
    { accessLogFields: ["ClientIp"] },
    { accessLogRequestHeaders: ["Authorization"] },
    { accessLogResponseHeaders: ["set-cookie"] },
  ])
    expect(() => loadConfig(wrong, {}, undefined)).toThrow(ConfigError);
});

it("drops lines while its file is too slow, counts them, and loses none otherwise", async () => {
  const path = join(folder, "many.log");
  const writer = new LineWriter(path, () => {});
  onTestFinished(() => rmSync(path));
  const line = `${"x".repeat(999)}\n`;
  for (let i = 0; i < 10_000; i++) writer.add(line, writeLatin1);
  await writer.close();
  const written = readFileSync(path, "utf8").length / line.length;
  expect(written + writer.dropped).toBe(10_000);
  expect(writer.dropped).toBeGreaterThan(0);
  expect(written).toBeGreaterThan(4000);
});

it("writes a line that is longer than a chunk, in its place", async () => {
  const path = join(folder, "long.log");
  const writer = new LineWriter(path, () => {});
  const lines = ["first\n", `${"x".repeat(600_000)}\n`, "last\n"];
  for (const line of lines) writer.add(line, writeLatin1);
  await writer.close();
  expect(readFileSync(path, "utf8")).toBe(lines.join(""));
  expect(writer.dropped).toBe(0);
});

it("counts the lines that a full disk refuses, and goes on afterwards", async () => {
  const failures: Error[] = [];
  const writer = new LineWriter("/dev/full", (error) => failures.push(error));
  writer.add("first\n", writeLatin1);
  await writer.flush();
  writer.add("second\n", writeLatin1);
  await writer.close();
  expect(failures).toMatchObject([{ code: "ENOSPC" }]);
  expect(writer.dropped).toBe(2);
});

it("ends although the reader of its pipe takes nothing, and counts the lines that are lost", async () => {
  const path = join(folder, "pipe");
  execFileSync("mkfifo", [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = new LineWriter(path, () => {});
  const line = `${"x".repeat(999)}\n`;
  for (let i = 0; i < 1000; i++) writer.add(line, writeLatin1);
  await writer.close(20);
  expect(writer.dropped).toBeGreaterThan(500);
  const dropped = writer.dropped;
  writer.add(line, writeLatin1);
  expect(writer.dropped).toBe(dropped + 1);
  closeSync(reader); // the write that hangs fails
});
