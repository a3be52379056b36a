import { once } from "node:events";
import { Agent, request, type IncomingMessage, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  exchangeBytes,
  host,
  startEdge,
  startOrigin,
  startRawOrigin,
  requestEdge,
} from "../request/test-edge.ts";
import { mebibyte } from "../../platform/bytes.ts";
import { freePort } from "../../../test/helpers/free-port.ts";

/** Writes `total` bytes as fast as the reader accepts them; `written` is the progress. */
function source(out: NodeJS.WritableStream, total: number): { written: number; ended: Promise<void> } {
  const chunk = Buffer.alloc(64 * 1024, "x");
  const state = { written: 0, ended: Promise.resolve() };
  state.ended = (async () => {
    for (; state.written < total; state.written += chunk.length) {
      if (!out.write(chunk)) await once(out, "drain");
    }
    out.end();
  })();
  return state;
}

async function count(stream: AsyncIterable<Buffer>): Promise<number> {
  let bytes = 0;
  for await (const chunk of stream) bytes += chunk.length;
  return bytes;
}

/** One address that refuses connections, then one that accepts. */
const twoAddresses = [
  { type: "A", content: "127.9.9.9" },
  { type: "A", content: "127.0.0.1" },
] as const;

describe("streaming", () => {
  it("10 MB go in both directions at once", async () => {
    const total = 10 * mebibyte;
    const { port: originPort } = await startOrigin((incoming, response) => void incoming.pipe(response));
    const { port } = await startEdge({ originPort });
    for (const framing of [{ "content-length": String(total) }, { "transfer-encoding": "chunked" }]) {
      const outgoing = request({ port, host: "127.0.0.1", method: "POST", headers: { host, ...framing } });
      const sending = source(outgoing, total);
      const [response] = (await once(outgoing, "response")) as [IncomingMessage];
      expect(await count(response)).toBe(total);
      await sending.ended;
    }
  });

  it("thousands of small chunks for a slow visitor wait for it once", async () => {
    const count = 200_000;
    const originPort = await startRawOrigin((socket) =>
      socket.end(
        `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(count)}0\r\n\r\n`,
      ),
    );
    const { port } = await startEdge({ originPort });
    const warnings: string[] = [];
    const warn = ({ name }: Error): number => warnings.push(name);
    process.on("warning", warn);
    onTestFinished(() => void process.off("warning", warn));
    const { body } = await requestEdge(port);
    expect(body.length).toBe(count);
    expect(warnings).toEqual([]);
  });

  it("a truncated response is also cut off for the visitor", async () => {
    const originPort = await startRawOrigin((socket) =>
      socket.end("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
    );
    const { port } = await startEdge({ originPort });
    await expect(requestEdge(port)).rejects.toThrow("aborted");
  });

  it("trailers are passed on, and interim responses are not", async () => {
    const { port: originPort } = await startOrigin((_incoming, response) => {
      response.writeProcessing();
      response.writeHead(200, { trailer: "x-sum" });
      response.write("body");
      response.addTrailers({ "x-sum": "1" });
      response.end();
    });
    const { port } = await startEdge({ originPort });
    expect(await requestEdge(port)).toMatchObject({ status: 200, body: "body", trailers: { "x-sum": "1" } });
  });

  it.each([
    ["no text", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", 200],
    ["UTF-8 in the text", "HTTP/1.1 200 \xe4\xbd\xa0\xe5\xa5\xbd\r\nContent-Length: 2\r\n\r\nok", 200],
    ["bytes outside ASCII in a header", "HTTP/1.1 200 OK\r\nX-A: \xe9\r\nContent-Length: 2\r\n\r\nok", 200],
    ["a status past 599", "HTTP/1.1 799 Odd\r\nContent-Length: 2\r\n\r\nok", 799],
    ["without a length", "HTTP/1.1 200 OK\r\n\r\nok", 200],
    ["HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nok", 200],
    ["two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", 520],
    [
      "a length and chunks",
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
      520,
    ],
    ["no HTTP", "220 smtp.example ESMTP\r\n", 520],
    ["nothing", "", 520],
    ["an unrequested upgrade", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", 520],
  ])("a response of the origin with %s", async (_what, answer, status) => {
    const originPort = await startRawOrigin((socket) =>
      socket.once("data", () => socket.end(answer, "latin1")),
    );
    const { port } = await startEdge({ originPort });
    const seen = await requestEdge(port);
    expect(seen.status).toBe(status);
    if (status !== 520) expect(seen.body).toBe("ok");
  });

  it("a HEAD, a 204 and a 304 have no body, and the connection stays usable", async () => {
    const { port: originPort } = await startOrigin((incoming, response) => {
      if (incoming.method === "HEAD") response.writeHead(200, { "content-length": 10 });
      else response.writeHead(Number(incoming.url!.slice(1)), { etag: '"a"' });
      response.end();
    });
    const { port } = await startEdge({ originPort });
    const head = `Host: ${host}\r\n`;
    const answer = await exchangeBytes(
      port,
      `HEAD / HTTP/1.1\r\n${head}\r\nGET /204 HTTP/1.1\r\n${head}\r\nGET /304 HTTP/1.1\r\n${head}Connection: close\r\n\r\n`,
    );
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 204", "HTTP/1.1 304"]);
    expect(answer).toMatch(/\r\ncontent-length: 10\r\n/i);
  });
});

describe("connections", () => {
  it("connections are reused: 50 requests of one visitor use one connection on each side", async () => {
    const origin = await startOrigin((incoming, response) => void incoming.pipe(response));
    const { port } = await startEdge({ originPort: origin.port });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const locals = new Set<number | undefined>();
    for (let i = 0; i < 50; i++) {
      const outgoing = request({ port, host: "127.0.0.1", agent, method: "POST", headers: { host } });
      outgoing.on("socket", (socket) => locals.add(socket.localPort ?? i));
      outgoing.end(i % 2 === 0 ? "" : "body");
      const [response] = (await once(outgoing, "response")) as [IncomingMessage];
      expect(await count(response)).toBe(i % 2 === 0 ? 0 : 4);
    }
    expect(origin.connections()).toBe(1);
    agent.destroy();
  });

  it("a body is sent in full to the second address when the first refuses connections", async () => {
    const { port: originPort } = await startOrigin((incoming, response) => void incoming.pipe(response));
    const { port } = await startEdge({ originPort, targets: twoAddresses });
    const body = "y".repeat(300_000);
    expect((await requestEdge(port, { method: "POST" }, body)).body).toBe(body);
    // The failed address is tried last now, so there is no further attempt at it.
    expect((await requestEdge(port, { method: "PUT" }, "again")).body).toBe("again");
  });

  it("a request that may have reached an origin is not sent to another", async () => {
    let attempts = 0;
    const originPort = await startRawOrigin((socket) =>
      socket.once("data", () => {
        attempts += 1;
        socket.destroy();
      }),
    );
    const { port } = await startEdge({
      originPort,
      targets: [
        { type: "A", content: "127.0.0.1" },
        { type: "A", content: "127.0.0.1" },
      ],
    });
    expect((await requestEdge(port, { method: "POST" }, "pay")).status).toBe(520);
    expect(attempts).toBe(1);
  });

  it("a visitor who disconnects during the body ends the request at the origin", async () => {
    const seen = Promise.withResolvers<IncomingMessage>();
    const { port: originPort } = await startOrigin((incoming) => seen.resolve(incoming));
    const { port } = await startEdge({ originPort });
    const outgoing = request({ port, host: "127.0.0.1", method: "POST", headers: { host } });
    outgoing.on("error", () => {});
    outgoing.write("half");
    const incoming = await seen.promise;
    incoming.resume();
    const gone = once(incoming, "error");
    outgoing.destroy();
    expect(((await gone) as [Error])[0].message).toBe("aborted");
  });

  it("a visitor who disconnects during the response ends it at the origin", async () => {
    const seen = Promise.withResolvers<ServerResponse>();
    const { port: originPort } = await startOrigin((_incoming, response) => {
      source(response, 1024 * mebibyte).ended.catch(() => {});
      seen.resolve(response);
    });
    const { port } = await startEdge({ originPort });
    const outgoing = request({ port, host: "127.0.0.1", headers: { host } });
    outgoing.on("error", () => {});
    outgoing.end();
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    await once(response, "data");
    const closed = once(await seen.promise, "close");
    outgoing.destroy();
    await closed;
  });

  it("an early response, before the end of the body, leaves the connection usable", async () => {
    const { port: originPort } = await startOrigin((incoming, response) => {
      if (incoming.method === "POST") response.writeHead(403).end("no");
      else response.end("next");
    });
    const { port } = await startEdge({ originPort });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const first = await requestEdge(port, { method: "POST", agent }, Buffer.alloc(4 * mebibyte));
    expect([first.status, first.body]).toEqual([403, "no"]);
    expect((await requestEdge(port, { agent })).body).toBe("next");
    agent.destroy();
  });
});

describe("a body", () => {
  it.each(["content-length", "transfer-encoding"])(
    "over the limit is refused (%s), and the page arrives",
    async (framing) => {
      const seen: string[] = [];
      const { port: originPort } = await startOrigin((incoming, response) => {
        incoming.resume().on("end", () => {
          seen.push(incoming.url!);
          response.end();
        });
      });
      const { port } = await startEdge({ originPort, settings: { bodyBytesMax: mebibyte } });
      const size = 8 * mebibyte;
      const headers = { [framing]: framing === "content-length" ? String(size) : "chunked" };
      const answer = await requestEdge(port, { method: "POST", headers }, Buffer.alloc(size));
      expect(answer).toMatchObject({ status: 413, headers: { connection: "close" } });
      expect(answer.body).toContain("error 413");
      expect(seen).toEqual([]);
      const fitting = await requestEdge(
        port,
        {
          method: "POST",
          headers: { [framing]: framing === "content-length" ? String(mebibyte) : "chunked" },
        },
        Buffer.alloc(mebibyte),
      );
      expect(fitting.status).toBe(200);
    },
  );

  it("for an origin that refuses connections gets the error page, not a broken connection", async () => {
    const { port } = await startEdge({ originPort: await freePort() });
    for (const size of [1, 100, 4 * mebibyte]) {
      expect((await requestEdge(port, { method: "POST" }, Buffer.alloc(size))).status).toBe(521);
    }
  });

  it("over the limit is refused without 100 Continue", async () => {
    const { port } = await startEdge({ originPort: 1, settings: { bodyBytesMax: mebibyte } });
    const headers = { host, expect: "100-continue", "content-length": String(2 * mebibyte) };
    const outgoing = request({ port, host: "127.0.0.1", method: "POST", headers });
    const events: string[] = [];
    outgoing.on("continue", () => events.push("continue"));
    outgoing.flushHeaders();
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    expect(response.statusCode).toBe(413);
    expect(await count(response)).toBeGreaterThan(0);
    expect(events).toEqual([]);
    outgoing.destroy();
  });

  it("is requested with 100 Continue", async () => {
    const { port: originPort } = await startOrigin((incoming, response) => void incoming.pipe(response));
    const { port } = await startEdge({ originPort });
    const outgoing = request({
      port,
      host: "127.0.0.1",
      method: "POST",
      headers: { host, expect: "100-continue" },
    });
    outgoing.flushHeaders();
    await once(outgoing, "continue");
    outgoing.end("body");
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    expect(await count(response)).toBe(4);
  });
});

describe("drain on close", () => {
  it("the address is known while it listens", async () => {
    const { edge, port } = await startEdge({ originPort: 1 });
    expect(edge.address).toMatchObject({ address: "127.0.0.1", port });
    await edge.close(0);
    expect(edge.address).toBeUndefined();
  });

  it("a running response is finished, an idle connection is closed, a new one is refused", async () => {
    const proceed = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    const { port: originPort } = await startOrigin((incoming, response) => {
      if (incoming.url === "/idle") response.end();
      else {
        response.write("first ");
        arrived.resolve();
        void proceed.promise.then(() => response.end("last"));
      }
    });
    const { edge, port } = await startEdge({ originPort });
    const idle = connect(port, "127.0.0.1");
    idle.write(`GET /idle HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    await once(idle, "data");
    const idleEnded = once(idle.resume(), "close");
    const agent = new Agent({ keepAlive: true });
    const inFlight = requestEdge(port, { path: "/slow", agent });
    await arrived.promise;
    const closed = edge.close(60_000);
    await idleEnded;
    await expect(requestEdge(port)).rejects.toThrow("ECONNREFUSED");
    proceed.resolve();
    expect((await inFlight).body).toBe("first last");
    await closed; // although the visitor would have kept the connection open
    agent.destroy();
  });

  it("requests that run past the deadline are aborted", async () => {
    const arrived = Promise.withResolvers<void>();
    const { port: originPort } = await startOrigin(() => arrived.resolve());
    const { edge, port } = await startEdge({ originPort });
    const inFlight = requestEdge(port).catch((error: unknown) => error);
    await arrived.promise;
    await edge.close(1);
    expect(await inFlight).toBeInstanceOf(Error);
  });
});
