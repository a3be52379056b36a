import { createServer, type IncomingMessage, type Server } from "node:http";
import { connect as connectHttp2, type ClientHttp2Session, type IncomingHttpHeaders } from "node:http2";
import { request as httpsRequest } from "node:https";
import { readFileSync } from "node:fs";
import { connect as connectTcp, createServer as createTcpServer, type AddressInfo } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../helpers/server.ts";

/** The edge over TLS from the visitors' side. */
let server: TestServer;
let origin: Server;
let authority: string;
let tlsPort: number;
let zoneId: string;
const host = "www.tls.example";
interface Seen {
  method: string;
  url: string;
  rawHeaders: string[];
  headers: IncomingMessage["headers"];
  body: string;
}

beforeAll(async () => {
  server = await startTestServer({ edgeTlsListen: "127.0.0.1:0" });
  authority = readFileSync(server.ready.tls_authority!, "utf8");
  tlsPort = Number(new URL(server.ready.edge_tls!).port);
  origin = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      const { method = "", url = "", rawHeaders, headers } = request;
      if (url === "/cut") {
        response.write("part", () => request.socket.resetAndDestroy());
        return;
      }
      response.setHeader("trailer", "x-sum");
      response.setHeader("connection", "x-own, keep-alive");
      response.setHeader("x-own", "1");
      response.write(JSON.stringify({ method, url, rawHeaders, headers, body } satisfies Seen));
      response.addTrailers({ "x-sum": String(body.length) });
      response.end();
    });
  });
  origin.on("upgrade", (_request, socket) => {
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\nhello",
    );
    socket.on("data", (chunk) => socket.write(chunk));
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  zoneId = (await server.call("POST", "/zones", { name: "tls.example" })).body.result.id as string;
  await server.call("POST", `/zones/${zoneId}/dns_records`, {
    type: "A",
    name: "www",
    content: "127.0.0.1",
    proxied: true,
  });
  await server.call("PUT", `/zones/${zoneId}/rulesets/phases/http_request_origin/entrypoint`, {
    rules: [
      {
        action: "route",
        expression: "true",
        action_parameters: { origin: { port: (origin.address() as AddressInfo).port } },
      },
    ],
  });
});
afterAll(async () => {
  origin.closeAllConnections();
  origin.close();
  await server.close(1000);
});

/** A connection that trusts the local authority only. */
const secure = (servername: string, ALPNProtocols: string[] = []): Promise<TLSSocket> =>
  new Promise((resolve, reject) => {
    const socket = connect(
      { host: "127.0.0.1", port: tlsPort, servername, ca: authority, ALPNProtocols },
      () => resolve(socket),
    );
    socket.on("error", reject);
  });

async function http2(): Promise<ClientHttp2Session> {
  const socket = await secure(host, ["h2"]);
  return connectHttp2(`https://${host}`, { createConnection: () => socket });
}

interface EdgeResponse {
  status: number;
  headers: IncomingHttpHeaders;
  trailers: IncomingHttpHeaders;
  body: string;
}
function ask(
  session: ClientHttp2Session,
  headers: Record<string, string | string[]>,
  body?: string,
): Promise<EdgeResponse> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ":authority": host, ...headers });
    const answer: EdgeResponse = { status: 0, headers: {}, trailers: {}, body: "" };
    stream.on("response", (received) => {
      answer.status = received[":status"]!;
      answer.headers = received;
    });
    stream.on("trailers", (received) => (answer.trailers = received));
    stream.setEncoding("utf8");
    stream.on("data", (chunk: string) => (answer.body += chunk));
    stream.on("end", () => resolve(answer));
    stream.on("error", reject);
    stream.end(body);
  });
}

function askHttp1(path = "/", headers: Record<string, string> = {}): Promise<EdgeResponse & { seen: Seen }> {
  return new Promise((resolve, reject) => {
    const options = {
      host: "127.0.0.1",
      port: tlsPort,
      servername: host,
      ca: authority,
      path,
      agent: false,
    } as const;
    const outgoing = httpsRequest({ ...options, headers: { host, ...headers } }, (response) => {
      let body = "";
      response.on("data", (chunk: Buffer) => (body += chunk.toString()));
      response.on("end", () => {
        const { statusCode: status = 0 } = response;
        resolve({
          status,
          headers: response.headers,
          trailers: {},
          body,
          seen: JSON.parse(body || "{}") as Seen,
        });
      });
    });
    outgoing.on("error", reject);
    outgoing.end();
  });
}

describe("certificates of the local authority", () => {
  it("have the requested name when a zone has it", async () => {
    const socket = await secure(host);
    expect(socket.authorized).toBe(true);
    expect(socket.getPeerCertificate().subjectaltname).toBe(`DNS:${host}`);
    socket.destroy();
    await expect(secure("www.unknown.example")).rejects.toMatchObject({
      code: "ERR_TLS_CERT_ALTNAME_INVALID",
    });
  });

  it("have this machine's name without a requested name", async () => {
    const socket = connect({ host: "127.0.0.1", port: tlsPort, ca: authority });
    await new Promise((resolve, reject) => socket.on("secureConnect", resolve).on("error", reject));
    expect(socket.authorized).toBe(true);
    socket.destroy();
  });
});

it.each([0, 10, 128 * 1024, 128 * 1024 + 1, 500_000])(
  "rules see the beginning of a body of %i bytes over HTTP/2, and the origin all of it",
  async (size) => {
    const path = `/zones/${zoneId}/rulesets/phases/http_request_origin/entrypoint`;
    const { port } = origin.address() as AddressInfo;
    const plain = { action: "route", expression: "true", action_parameters: { origin: { port } } };
    const isTruncated = size > 128 * 1024;
    const expression = `len(http.request.body.raw) == ${Math.min(size, 128 * 1024)} and ${isTruncated ? "" : "not "}http.request.body.truncated`;
    const asking = { action: "route", expression, action_parameters: { host_header: "seen.example" } };
    expect((await server.call("PUT", path, { rules: [plain, asking] })).body.errors).toEqual([]);
    const session = await http2();
    for (const declared of [{}, { "content-length": String(size) }]) {
      const { body } = await ask(session, { ":method": "POST", ":path": "/", ...declared }, "x".repeat(size));
      const seen = JSON.parse(body) as Seen;
      expect([seen.headers.host, seen.body.length]).toEqual(["seen.example", size]);
    }
    session.close();
    await server.call("PUT", path, { rules: [plain] });
  },
);

describe("HTTP/1.1", () => {
  it("is served as without TLS, and the origin sees https", async () => {
    const { status, seen } = await askHttp1("/a?b=c");
    expect(status).toBe(200);
    expect(seen.url).toBe("/a?b=c");
    expect(seen.headers).toMatchObject({
      host,
      "x-forwarded-proto": "https",
      "cf-visitor": '{"scheme":"https"}',
      "cf-connecting-ip": "127.0.0.1",
    });
  });

  it("takes WebSockets", async () => {
    const socket = await secure(host, ["http/1.1"]);
    socket.write(`GET / HTTP/1.1\r\nhost: ${host}\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n`);
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
    await expect.poll(() => text).toContain("hello");
    socket.write("echo me");
    await expect.poll(() => text).toContain("echo me");
    socket.destroy();
  });

  it("returns a page for malformed requests", async () => {
    const socket = await secure(host);
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
    socket.write("nonsense\r\n\r\n");
    await expect.poll(() => text).toMatch(/^HTTP\/1\.1 400 /);
    socket.destroy();
  });
});

describe("HTTP/2", () => {
  let session: ClientHttp2Session;
  beforeAll(async () => {
    session = await http2();
  });
  afterAll(() => session.destroy());

  it("reaches the origin as HTTP/1.1 would", async () => {
    const answer = await ask(session, { ":path": "/a?b=c", "x-mine": "1", cookie: ["a=1", "b=2"] });
    const seen = JSON.parse(answer.body) as Seen;
    expect(answer.status).toBe(200);
    expect(seen).toMatchObject({ method: "GET", url: "/a?b=c" });
    expect(seen.headers).toMatchObject({
      host,
      "x-mine": "1",
      cookie: "a=1; b=2",
      "x-forwarded-proto": "https",
    });
    expect(seen.rawHeaders.some((name) => name.startsWith(":"))).toBe(false);
    expect(answer.headers["cf-ray"]).toMatch(/^[0-9a-f]{16}-DEV$/);
    expect(answer.headers["x-own"]).toBeUndefined();
    expect(answer.trailers["x-sum"]).toBe("0");
  });

  it("streams bodies with a length and without", async () => {
    const body = "x".repeat(200_000);
    for (const headers of [{ "content-length": String(body.length) }, {} as Record<string, string>]) {
      const answer = await ask(session, { ":method": "POST", ...headers }, body);
      expect((JSON.parse(answer.body) as Seen).body.length).toBe(body.length);
      expect(answer.trailers["x-sum"]).toBe(String(body.length));
    }
  });

  it("serves many requests at once on one connection", async () => {
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, i) => ask(session, { ":path": `/${i}` })),
    );
    expect(answers.map((answer) => (JSON.parse(answer.body) as Seen).url)).toEqual(
      answers.map((_, i) => `/${i}`),
    );
  });

  it("returns error pages, also to HEAD and with an unread body", async () => {
    const unknown = { ":authority": "www.unknown.example" };
    expect(await ask(session, unknown)).toMatchObject({ status: 404 });
    expect(await ask(session, { ...unknown, ":method": "HEAD" })).toMatchObject({ status: 404, body: "" });
    expect(await ask(session, { ...unknown, ":method": "POST" }, "x".repeat(500_000))).toMatchObject({
      status: 404,
    });
    expect((await ask(session, {})).status).toBe(200);
  });

  it("resets a response that the origin does not finish", async () => {
    await expect(ask(session, { ":path": "/cut" })).rejects.toMatchObject({ code: "ERR_HTTP2_STREAM_ERROR" });
    expect((await ask(session, {})).status).toBe(200);
  });

  it("survives a visitor who disconnects midway", async () => {
    const stream = session.request({ ":authority": host, ":method": "POST", ":path": "/left" });
    stream.on("error", () => {});
    stream.write("part");
    stream.close();
    expect((await ask(session, {})).status).toBe(200);
  });
});

it("TLS is at least 1.2", async () => {
  const socket = connect({
    host: "127.0.0.1",
    port: tlsPort,
    servername: host,
    ca: authority,
    maxVersion: "TLSv1.1",
    minVersion: "TLSv1",
  });
  await expect(
    new Promise((resolve, reject) => socket.on("secureConnect", resolve).on("error", reject)),
  ).rejects.toThrow();
});

it("survives first messages that are malformed, truncated, or never end", async () => {
  const whole = await new Promise<Buffer>((resolve) => {
    const listener = createTcpServer((socket) => {
      socket.once("data", (chunk: Buffer) => {
        resolve(chunk);
        socket.destroy();
        listener.close();
      });
    });
    listener.listen(0, "127.0.0.1", () => {
      const { port } = listener.address() as AddressInfo;
      connect({ host: "127.0.0.1", port, servername: host }).on("error", () => {});
    });
  });
  const random = (below: number): number => Math.floor(Math.random() * below);
  const waiting = connectTcp(tlsPort, "127.0.0.1");
  waiting.on("error", () => {}).write(whole.subarray(0, 20));
  for (let i = 0; i < 200; i++) {
    const bent = Buffer.from(whole);
    for (let changes = random(6); changes >= 0; changes--) bent[random(bent.length)] = random(256);
    const socket = connectTcp(tlsPort, "127.0.0.1");
    await new Promise<void>((resolve) => {
      socket.on("error", () => {}).on("close", () => resolve());
      socket.on("data", () => socket.destroy());
      socket.write(bent.subarray(0, i % 2 === 0 ? bent.length : random(bent.length)), () =>
        i % 3 === 0 ? socket.resetAndDestroy() : socket.end(),
      );
    });
  }
  expect((await askHttp1("/still")).seen.url).toBe("/still");
  waiting.destroy();
});
