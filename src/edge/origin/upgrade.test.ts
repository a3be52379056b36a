import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { describe, expect, it, vi } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { AddressPolicy } from "./address-policy.ts";
import { edgeDefaults } from "../http/settings.ts";
import { exchangeBytes, host, startEdge, startOrigin, startRawOrigin } from "../request/test-edge.ts";
import { joinOriginWebSocket } from "./upgrade.ts";
import { freePort } from "../../../test/helpers/free-port.ts";
import { untested } from "./under-test.ts";

const ask =
  `GET /socket HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const switching =
  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-A: b\r\n\r\n";

/** A visitor's raw connection, and the bytes that it has received. */
function visitor(port: number, bytes: string): { socket: Socket; received: () => string } {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.setEncoding("latin1").on("data", (chunk: string) => (text += chunk));
  socket.on("error", () => {});
  socket.write(bytes, "latin1");
  return { socket, received: () => text };
}

describe("a WebSocket", () => {
  it("carries messages of every size both ways, and its close", async () => {
    const origin = await startOrigin((_request, response) => response.end());
    const sockets = new WebSocketServer({ server: origin.server });
    const seen: IncomingMessage["headers"][] = [];
    sockets.on("connection", (socket, incoming) => {
      seen.push(incoming.headers);
      socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
    });
    const { port } = await startEdge({ originPort: origin.port });
    const client = new WebSocket(`ws://127.0.0.1:${port}/`, ["chat"], {
      headers: { host, "cf-connecting-ip": "forged" },
    });
    await once(client, "open");
    expect(client.protocol).toBe("chat");
    for (const size of [0, 1, 125, 126, 65_536, 3 * 1024 * 1024]) {
      client.send(Buffer.alloc(size, size % 251));
      const [echo] = (await once(client, "message")) as [Buffer];
      expect(echo.equals(Buffer.alloc(size, size % 251))).toBe(true);
    }
    expect(seen[0]).toMatchObject({ host, "cf-connecting-ip": "127.0.0.1", "cdn-loop": "selvedge" });
    client.close(4001, "done");
    expect(await once(client, "close")).toEqual([4001, Buffer.from("done")]);
    sockets.close();
  });

  it("uses the second address when the first refuses connections", async () => {
    const originPort = await startRawOrigin((socket) =>
      socket.once("data", () => socket.end(`${switching}hello`)),
    );
    const { port } = await startEdge({
      originPort,
      targets: [
        { type: "A", content: "127.9.9.9" },
        { type: "A", content: "127.0.0.1" },
      ],
    });
    expect(await exchangeBytes(port, ask)).toMatch(/^HTTP\/1\.1 101 [^]*\r\n\r\nhello$/);
  });

  it("the last bytes before an origin closes reach a slow visitor", async () => {
    const size = 8 * 1024 * 1024;
    const originPort = await startRawOrigin((socket) =>
      socket.once("data", () => {
        socket.write(switching);
        socket.end(Buffer.alloc(size, "x"));
        socket.resume();
      }),
    );
    const { port } = await startEdge({ originPort });
    const socket = connect(port, "127.0.0.1");
    let received: Buffer = Buffer.alloc(0);
    let bytes = 0;
    socket.on("data", (chunk: Buffer) => {
      if (bytes === 0) received = chunk;
      bytes += chunk.length;
      socket.pause();
      setImmediate(() => socket.resume());
    });
    socket.write(ask);
    await once(socket, "close");
    expect(bytes - received.indexOf("\r\n\r\n") - 4).toBe(size);
  });

  it("bytes sent with the request reach the origin after the upgrade, and not before", async () => {
    const arrived: string[] = [];
    const originPort = await startRawOrigin((socket) => {
      socket.setEncoding("latin1").on("data", (chunk: string) => {
        arrived.push(chunk);
        if (arrived.length === 1) socket.write(switching);
        else socket.end("bye");
      });
    });
    const { port } = await startEdge({ originPort });
    expect(await exchangeBytes(port, `${ask}early`)).toMatch(/bye$/);
    expect(arrived[0]).toMatch(/^GET \/socket HTTP\/1\.1\r\n[^]*\r\n\r\n$/);
    expect(arrived.slice(1).join("")).toBe("early");
  });

  it("a response that arrives as its visitor disconnects is dropped", async () => {
    // Disconnected, but "close" has not been emitted yet.
    const socket = new Duplex({ emitClose: false, read: () => {} });
    const originPort = await startRawOrigin((origin) =>
      origin.once("data", () => {
        socket.destroy();
        origin.end("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody");
      }),
    );
    const asked = { addresses: ["127.0.0.1"], port: originPort, method: "GET", path: "/", headers: [] };
    const origins = {
      underTest: untested,
      connect: async (_: string[], __: number, attempt: (address: string) => Promise<void>) =>
        attempt("127.0.0.1"),
    };
    await joinOriginWebSocket(
      socket as never,
      Buffer.alloc(0),
      asked as never,
      origins as never,
      edgeDefaults,
    );
  });

  it("a visitor who disconnects ends the origin's side", async () => {
    const left = Promise.withResolvers<void>();
    const originPort = await startRawOrigin((socket) => {
      socket.once("data", () => socket.write(switching)).on("close", () => left.resolve());
    });
    const { port } = await startEdge({ originPort });
    const { socket, received } = visitor(port, ask);
    await vi.waitUntil(() => received().includes("\r\n\r\n"));
    socket.destroy();
    await left.promise;
  });

  it("is ended when the edge closes", async () => {
    const originPort = await startRawOrigin((socket) => socket.once("data", () => socket.write(switching)));
    const { edge, port } = await startEdge({ originPort });
    const { socket, received } = visitor(port, ask);
    await vi.waitUntil(() => received().includes("\r\n\r\n"));
    const closed = once(socket, "close");
    await edge.close(1);
    await closed;
  });

  it("is closed after the idle timeout", async () => {
    const originPort = await startRawOrigin((socket) => socket.once("data", () => socket.write(switching)));
    const { port } = await startEdge({ originPort, settings: { idleTimeoutMs: 50 } });
    expect(await exchangeBytes(port, ask)).toMatch(/^HTTP\/1\.1 101 /);
  });
});

describe("a failed upgrade", () => {
  it.each([
    ["a length", "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", "no"],
    ["chunks", "HTTP/1.1 401 Unauthorized\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n", "no"],
    ["a success", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok"],
    ["a part only", "HTTP/1.1 403 Forbidden\r\nContent-Length: 20\r\n\r\nno", "no"],
  ])("passes on the origin's response with %s, and ends the connection", async (_what, answer, body) => {
    let received = "";
    const originPort = await startRawOrigin((socket) => {
      socket.setEncoding("latin1").on("data", (chunk: string) => (received += chunk));
      socket.once("data", () => socket.end(answer));
    });
    const { port } = await startEdge({ originPort });
    const seen = await exchangeBytes(port, `${ask}GET /smuggled HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    expect(seen.split("\r\n")[0]).toBe(answer.split("\r\n")[0]);
    expect(seen.slice(seen.indexOf("\r\n\r\n") + 4)).toBe(body);
    expect(seen).toMatch(/\r\nconnection: close\r\n/);
    expect(seen).not.toMatch(/transfer-encoding/i);
    expect(received).not.toContain("/smuggled");
  });

  it.each(["000", "099"])("a response with status %s is invalid", async (status) => {
    const originPort = await startRawOrigin((socket) =>
      socket.once("data", () => socket.end(`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\n\r\n`)),
    );
    const { port } = await startEdge({ originPort });
    expect(await exchangeBytes(port, ask)).toMatch(/^HTTP\/1\.1 520 /);
  });

  it.each([
    ["an origin that refuses", 521, {}],
    ["a private origin", 403, { policy: new AddressPolicy("deny") }],
  ])("%s", async (_what, status, options) => {
    const { port } = await startEdge({ originPort: await freePort(), ...options });
    const answer = await exchangeBytes(port, ask);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer).toContain("</html>");
  });

  it.each([
    ["another protocol", "Connection: Upgrade\r\nUpgrade: h2c\r\n"],
    ["two protocols", "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n"],
    ["none", ""],
  ])("an origin that switches to %s is refused, and gets no more bytes", async (_what, headers) => {
    let received = "";
    const ended = Promise.withResolvers<void>();
    const originPort = await startRawOrigin((socket) => {
      socket.setEncoding("latin1").on("data", (chunk: string) => (received += chunk));
      socket.on("close", () => ended.resolve());
      socket.once("data", () => socket.write(`HTTP/1.1 101 Switching\r\n${headers}\r\nhello`));
    });
    const { port } = await startEdge({ originPort });
    const answer = await exchangeBytes(port, `${ask}for the origin`);
    expect(answer).toMatch(/^HTTP\/1\.1 520 /);
    expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1);
    expect(answer).not.toContain("hello");
    await ended.promise;
    expect(received).not.toContain("for the origin");
  });

  it("an origin that never responds, or closes", async () => {
    const silent = await startRawOrigin(() => {});
    const one = await startEdge({ originPort: silent, settings: { originFirstByteTimeoutMs: 50 } });
    expect(await exchangeBytes(one.port, ask)).toMatch(/^HTTP\/1\.1 524 /);
    const closing = await startRawOrigin((socket) => socket.once("data", () => socket.end()));
    const two = await startEdge({ originPort: closing });
    expect(await exchangeBytes(two.port, ask)).toMatch(/^HTTP\/1\.1 520 /);
  });

  it.each([
    ["another protocol", ask.replace("websocket", "h2c")],
    ["a POST", ask.replace("GET", "POST").replace("\r\n\r\n", "\r\nContent-Length: 0\r\n\r\n")],
    ["a body", ask.replace("\r\n\r\n", "\r\nContent-Length: 2\r\n\r\nhi")],
  ])("with %s is an ordinary request", async (_what, bytes) => {
    const seen: IncomingMessage["headers"][] = [];
    const { port: originPort } = await startOrigin((incoming, response) => {
      seen.push(incoming.headers);
      response.end("ordinary");
    });
    const { port } = await startEdge({ originPort });
    expect(await exchangeBytes(port, bytes)).toMatch(/^HTTP\/1\.1 200 OK[^]*ordinary/);
    expect(seen).toHaveLength(1);
    expect(seen[0]).not.toHaveProperty("upgrade");
  });
});
