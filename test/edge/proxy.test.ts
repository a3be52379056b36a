import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { createServer as createRawServer, type AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { requestEdge } from "../helpers/edge-request.ts";
import { loopback, raw, startEdge, startOrigin, type TestEdge, type TestOrigin } from "./harness.ts";

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close();
});
async function pair(
  handle: Parameters<typeof startOrigin>[0],
  more: Parameters<typeof startEdge>[2] = {},
): Promise<{ edge: TestEdge; origin: TestOrigin }> {
  const origin = await startOrigin(handle);
  const edge = await startEdge({ "a.example": loopback }, origin.port, more);
  open.push(origin, edge);
  return { edge, origin };
}
const host = "a.example";

/** Resolves once a count has grown and then stayed constant. */
async function standsStill(count: () => number): Promise<void> {
  let before = -1;
  await vi.waitFor(
    () => {
      const now = count();
      const isStill = now === before && now > 0;
      before = now;
      if (!isStill) throw new Error("still growing");
    },
    { interval: 200 },
  );
}

describe("streaming", () => {
  it("a slow visitor holds the origin back", async () => {
    const total = 64 * 1024 * 1024;
    const chunk = Buffer.alloc(1024 * 1024, "x");
    let written = 0;
    const { edge } = await pair((_request, response) => {
      const write = (): void => {
        while (written < total) {
          written += chunk.length;
          if (!response.write(chunk)) {
            response.once("drain", write);
            return;
          }
        }
        response.end();
      };
      write();
    });
    const outgoing = request(edge.url, { headers: { host }, agent: false });
    outgoing.end();
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    // Nothing is read: the origin stops when the buffers in between are full, long before its end.
    await standsStill(() => written);
    expect(written).toBeLessThan(total / 2);
    let received = 0;
    for await (const part of response) received += (part as Buffer).length;
    expect(received).toBe(total);
  });

  it("a slow origin holds the visitor back, and gets the whole body", async () => {
    let received = 0;
    const proceed = Promise.withResolvers<void>();
    const { edge } = await pair((incoming, response) => {
      void proceed.promise.finally(() => {
        incoming.on("data", (part: Buffer) => (received += part.length));
        incoming.on("end", () => response.end(String(received)));
      });
    });
    const total = 64 * 1024 * 1024;
    const chunk = Buffer.alloc(1024 * 1024, "x");
    const outgoing = request(edge.url, {
      method: "PUT",
      headers: { host, "content-length": total },
      agent: false,
    });
    let sent = 0;
    const sending = (async () => {
      for (; sent < total; sent += chunk.length) if (!outgoing.write(chunk)) await once(outgoing, "drain");
      outgoing.end();
    })();
    await standsStill(() => sent);
    expect(sent).toBeLessThan(total / 2);
    proceed.resolve();
    await sending;
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    let text = "";
    for await (const part of response) text += (part as Buffer).toString();
    expect(text).toBe(String(total));
  });

  it("a visitor who disconnects ends the request at the origin", async () => {
    const arrived = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    const { edge } = await pair((_incoming, response) => {
      response.on("close", ended.resolve);
      arrived.resolve();
    });
    const outgoing = request(edge.url, { headers: { host }, agent: false });
    outgoing.on("error", () => {});
    outgoing.end();
    await arrived.promise;
    outgoing.destroy();
    await ended.promise;
  });

  it("an aborted response of the origin does not look complete", async () => {
    const { edge } = await pair((_incoming, response) => {
      response.writeHead(200, { "content-length": 100 });
      response.write("part", () => response.destroy());
    });
    await expect(requestEdge(edge.url, host)).rejects.toThrow();
  });
});

it("reuses connections to the origin", async () => {
  const { edge, origin } = await pair((_incoming, response) => response.end("ok"));
  for (let i = 0; i < 20; i++) await requestEdge(edge.url, host);
  expect(origin.connections()).toBe(1);
});

it("repeats a GET when its idle connection closes as it is sent, and never a POST", async () => {
  let requests = 0;
  const origin = createRawServer((socket) => {
    // Each connection responds once; at the next request it is closed.
    let answered = false;
    socket.on("error", () => {});
    socket.on("data", () => {
      requests += 1;
      if (answered) socket.destroy();
      else socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
      answered = true;
    });
  });
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  const edge = await startEdge({ [host]: loopback }, (origin.address() as AddressInfo).port);
  open.push(origin, edge);
  for (let i = 0; i < 3; i++) expect((await requestEdge(edge.url, host)).status).toBe(200);
  expect(requests).toBe(5);
  const post = await raw(
    edge.port,
    `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
  );
  expect(post).toMatch(/^HTTP\/1.1 520 /);
  expect(requests).toBe(6);
});

describe("headers", () => {
  const echo = async (headers: Record<string, string>): Promise<Record<string, string>> => {
    const { edge } = await pair((incoming, response) => response.end(JSON.stringify(incoming.headers)));
    return JSON.parse((await requestEdge(edge.url, host, "/", headers)).body) as Record<string, string>;
  };

  it("sets the visitor's address, and ignores headers that claim another", async () => {
    const received = await echo({
      "cf-connecting-ip": "6.6.6.6",
      "cf-ray": "forged",
      "cf-visitor": "forged",
      "cf-ipcountry": "XX",
      "true-client-ip": "6.6.6.6",
      cf_connecting_ip: "6.6.6.6",
      x_forwarded_for: "6.6.6.6",
      "x-forwarded-proto": "https",
      "x-forwarded-for": "192.0.2.7",
    });
    expect(received).toMatchObject({
      host,
      "cf-connecting-ip": "127.0.0.1",
      "cf-visitor": '{"scheme":"http"}',
      "x-forwarded-proto": "http",
      "x-forwarded-for": "192.0.2.7, 127.0.0.1",
      "cdn-loop": "selvedge",
    });
    expect(received["cf-ray"]).toMatch(/^[0-9a-f]{16}-DEV$/);
    expect(received).not.toHaveProperty("cf-ipcountry");
    expect(received).not.toHaveProperty("true-client-ip");
    expect(JSON.stringify(received)).not.toContain("6.6.6.6");
  });

  it("drops hop-by-hop headers", async () => {
    const received = await echo({
      connection: "close, X-Hop, content-length",
      "x-hop": "1",
      te: "trailers",
      "proxy-authorization": "secret",
      "keep-alive": "timeout=5",
      "x-end-to-end": "kept",
    });
    for (const name of ["x-hop", "te", "proxy-authorization"]) expect(received).not.toHaveProperty(name);
    expect(received["x-end-to-end"]).toBe("kept");
    const { edge } = await pair((_incoming, response) => {
      response.writeHead(200, [
        "Connection",
        "X-Secret",
        "X-Secret",
        "1",
        "Set-Cookie",
        "a=1",
        "Set-Cookie",
        "b=2",
        "X-Kept",
        "yes",
      ]);
      response.end();
    });
    const answer = await requestEdge(edge.url, host);
    expect(answer.headers).toMatchObject({ "x-kept": "yes", "set-cookie": ["a=1", "b=2"] });
    expect(answer.headers).not.toHaveProperty("x-secret");
  });

  it("answers 508 to a request that has passed through before", async () => {
    const { edge } = await pair((_incoming, response) => response.end("never"));
    expect((await requestEdge(edge.url, host, "/", { "cdn-loop": "other; v=1, Selvedge" })).status).toBe(508);
    expect((await requestEdge(edge.url, host, "/", { "cdn-loop": "other" })).status).toBe(200);
  });
});

describe("upgrades", () => {
  it("joins a WebSocket", async () => {
    const { edge, origin } = await pair(() => {});
    const sockets = new WebSocketServer({ server: origin.server });
    sockets.on("connection", (socket, incoming) => {
      socket.send(`from ${String(incoming.headers["cf-connecting-ip"])}`);
      socket.on("message", (data) => socket.send(data));
    });
    const visitor = new WebSocket(edge.url.replace("http", "ws"), { headers: { host } });
    const messages: string[] = [];
    visitor.on("message", (data) => messages.push((data as Buffer).toString()));
    await once(visitor, "open");
    visitor.send("x".repeat(200_000));
    await vi.waitFor(() => expect(messages.map((message) => message.length)).toEqual([14, 200_000]));
    visitor.close();
    await once(visitor, "close");
    sockets.close();
  });

  it("passes on a failed upgrade, and closes the connection", async () => {
    const { edge } = await pair((_incoming, response) => {
      response.writeHead(403);
      response.end("no");
    });
    const visitor = new WebSocket(edge.url.replace("http", "ws"), { headers: { host } });
    const [, response] = (await once(visitor, "unexpected-response")) as [unknown, IncomingMessage];
    expect([response.statusCode, response.headers.connection]).toEqual([403, "close"]);
    visitor.on("error", () => {});
    visitor.terminate();
  });
});

describe("visitor errors", () => {
  const nobody = { type: "A" as const, content: "127.0.0.1" };
  const cases: [what: string, host: string, status: number, code: number][] = [
    ["an unknown host", "other.example", 404, 1001],
    ["a name without a record", "none.a.example", 404, 1001],
    ["an address", "127.0.0.1", 403, 1003],
    ["an unproxied record", "dns-only.a.example", 421, 1802],
    ["a name that has no address", "nowhere.a.example", 530, 1016],
    ["a loop of names", "loop.a.example", 530, 1016],
    ["an origin that refuses connections", "refuses.a.example", 521, 521],
    ["a private origin", "private.a.example", 403, 1803],
  ];
  it.each(cases)("%s, as HTML and as JSON", async (_what, name, status, code) => {
    const edge = await startEdge(
      {
        "nowhere.a.example": [{ type: "CNAME", content: "nowhere.invalid" }],
        "loop.a.example": [{ type: "CNAME", content: "loop.a.example" }],
        "refuses.a.example": [nobody],
        "private.a.example": [nobody],
      },
      1,
      { privateNetworks: name.startsWith("private") ? "deny" : "origins" },
    );
    open.push(edge);
    edge.zone.setHost("dns-only.a.example", { isProxied: false, targets: [nobody] });
    const html = await requestEdge(edge.url, name);
    expect(html.status).toBe(status);
    expect(html.headers["content-type"]).toMatch(/^text\/html/);
    expect(html.body).toContain(`error ${code}`);
    expect(html.body).not.toMatch(/src=|href=|url\(/);
    const json = await requestEdge(edge.url, name, "/", { accept: "application/json" });
    expect((JSON.parse(json.body) as { error: { code: number; ray: string } }).error).toMatchObject({
      code,
      ray: json.headers["cf-ray"],
    });
  });

  it("a paused zone answers 503", async () => {
    const { edge } = await pair((_incoming, response) => response.end());
    edge.zone.isPaused = true;
    expect((await requestEdge(edge.url, host)).status).toBe(503);
    edge.zone.isPaused = false;
    expect((await requestEdge(edge.url, host)).status).toBe(200);
  });

  it("an origin that never responds, or does not speak HTTP", async () => {
    const silent = await pair(() => {}, { settings: { originFirstByteTimeoutMs: 100 } });
    expect((await requestEdge(silent.edge.url, host)).status).toBe(524);
    const { edge, origin } = await pair(() => {});
    origin.server.removeAllListeners("connection");
    origin.server.on("connection", (socket) => socket.end("SSH-2.0-nonsense\r\n"));
    expect((await requestEdge(edge.url, host)).status).toBe(520);
  });
});

describe("addresses", () => {
  it("tries the next address when the first does not accept connections", async () => {
    const { edge } = await pair((_incoming, response) => response.end("second"));
    edge.zone.setHost(host, { isProxied: true, targets: [{ type: "A", content: "127.9.9.9" }, ...loopback] });
    expect((await requestEdge(edge.url, host)).body).toBe("second");
  });

  it("does not reach the node's own listeners, in any form of address", async () => {
    const { edge, origin } = await pair((_incoming, response) => response.end("secret"));
    edge.policy.forbidListener(origin.port);
    for (const content of ["127.0.0.1", "127.1.2.3", "0.0.0.0"]) {
      edge.zone.setHost(host, { isProxied: true, targets: [{ type: "A", content }] });
      expect((await requestEdge(edge.url, host)).status).toBe(403);
    }
    for (const content of [
      "::1",
      "::",
      "::ffff:127.0.0.1",
      "::ffff:7f00:1",
      "64:ff9b::7f00:1",
      "2002:7f00:1::",
    ]) {
      edge.zone.setHost(host, { isProxied: true, targets: [{ type: "AAAA", content }] });
      expect((await requestEdge(edge.url, host)).status).toBe(403);
    }
  });

  it("checks the address of the connection, so that a changing name cannot bypass it", async () => {
    const answers = [["192.0.2.1"], ["127.0.0.1"], ["::ffff:127.0.0.1"], ["169.254.169.254"]];
    const { edge } = await pair((_incoming, response) => response.end("secret"), {
      privateNetworks: "deny",
      lookUp: async () => answers.shift() ?? [],
    });
    edge.zone.setHost(host, { isProxied: true, targets: [{ type: "CNAME", content: "fickle.example" }] });
    for (let i = 0; i < 4; i++) {
      const answer = await requestEdge(edge.url, host);
      expect([answer.status, answer.body.includes("secret")]).toEqual([403, false]);
    }
  });
});
