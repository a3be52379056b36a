import { once } from "node:events";
import { createServer } from "node:http";
import {
  connect,
  createServer as createTcpServer,
  type AddressInfo,
  type Server,
  type Socket,
} from "node:net";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { fc } from "../../../test/helpers/properties.ts";
import { Http1Connection } from "./connection.ts";
import type { Http1Request } from "./request.ts";
import type { Http1Response } from "./response.ts";
import { Http1Server } from "./server.ts";

const limits = {
  headerBytesMax: 4000,
  headTimeoutMs: 60_000,
  keepAliveTimeoutMs: 60_000,
  idleTimeoutMs: 60_000,
};

interface Seen {
  method: string | undefined;
  url: string | undefined;
  headers: string[];
  body: string;
  trailers: string[];
}

/** Reads a request, and notes it once it is complete. */
function note(
  request: Pick<Http1Request, "method" | "url" | "rawHeaders" | "rawTrailers" | "on">,
  seen: Seen[],
): void {
  let body = "";
  request.on("data", (chunk: Buffer) => (body += chunk.toString("latin1")));
  request.on("end", () => {
    const { method, url, rawHeaders: headers, rawTrailers: trailers } = request;
    seen.push({ method, url, headers, body, trailers });
  });
  request.on("error", () => {});
}

function newServer(serve: (request: Http1Request, response: Http1Response) => void, some = {}): Http1Server {
  return new Http1Server(
    { ...limits, ...some },
    {
      serve,
      isUpgrade: ({ headers }) => headers.upgrade === "websocket",
      serveUpgrade: (_request, socket, head) =>
        socket.end(`HTTP/1.1 101 Joined\r\n\r\n${head.toString("latin1")}`),
      refuse: ({ reason }, socket) => socket.end(`HTTP/1.1 400 ${reason}\r\n\r\n`, () => socket.destroy()),
    },
  );
}

async function start(
  serve: (request: Http1Request, response: Http1Response) => void,
  some = {},
): Promise<{ port: number; server: Http1Server }> {
  const server = newServer(serve, some);
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(async () => server.drain(0));
  return { port, server };
}

/** All bytes that a server sends until it closes the connection. */
function exchange(port: number, bytes: string, end = false): Promise<string> {
  return new Promise((resolve) => {
    let answer = "";
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    socket.on("data", (chunk) => (answer += chunk.toString("latin1"))).on("error", () => {});
    socket.on("end", () => socket.end()).on("close", () => resolve(answer));
    if (end) socket.end(bytes, "latin1");
    else socket.write(bytes, "latin1");
  });
}

const latin1 = (maxLength: number): fc.Arbitrary<string> =>
  fc.uint8Array({ maxLength }).map((bytes) => Buffer.from(bytes).toString("latin1"));
const name = fc.stringMatching(/^x-[!#$%&'*+.^_`|~\da-zA-Z-]{0,12}$/);
const value = fc.stringMatching(/^(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]{0,20}[!-~\x80-\xff])?)?$/);
const fields = fc.array(fc.tuple(name, value), { maxLength: 4 });
const lines = (list: readonly (readonly [string, string])[]): string =>
  list.map(([each, text]) => `${each}: ${text}\r\n`).join("");

/** A request, and its bytes in one of the three framings. */
const written = fc
  .record({
    method: fc.constantFrom("GET", "POST", "M-SEARCH", "PURGE"),
    url: fc.stringMatching(/^\/[!-"$-~]{0,20}$/),
    own: fields,
    body: fc.array(latin1(60), { maxLength: 4 }),
    trailers: fields,
    framing: fc.constantFrom("none", "length", "chunked"),
    before: fc.constantFrom("", "\r\n", "\r\n\r\n"),
    extension: fc.constantFrom("", ";a=b", ';q="x y"'),
  })
  .map(({ method, url, own, body, trailers, framing, before, extension }) => {
    const all = framing === "none" ? "" : body.join("");
    const chunks = body
      .filter(Boolean)
      .map((each) => `${each.length.toString(16)}${extension}\r\n${each}\r\n`);
    const length: [string, string] = ["Content-Length", String(all.length)];
    const headers = {
      none: own,
      length: [length, ...own],
      chunked: [...own, ["Transfer-Encoding", "Chunked"] as [string, string]],
    }[framing as "none"];
    const after = framing === "chunked" ? `${chunks.join("")}0\r\n${lines(trailers)}\r\n` : all;
    return {
      seen: {
        method,
        url,
        headers: headers.flat(),
        body: all,
        trailers: framing === "chunked" ? trailers.flat() : [],
      },
      bytes: `${before}${method} ${url} HTTP/1.1\r\n${lines(headers)}\r\n${after}`,
    };
  });

describe("requests of one connection", () => {
  it("are read alike and answered in turn, however their bytes are split", async () => {
    let seen: Seen[] = [];
    const server = newServer((request, response) => {
      note(request, seen);
      request.on("end", () => setImmediate(() => response.end(request.url)));
    });
    let accepted = (_socket: Socket): void => {};
    const listener = createTcpServer((socket) => accepted(socket)).listen(0, "127.0.0.1");
    onTestFinished(() => void listener.close());
    await once(listener, "listening");
    const run = async (bytes: string, at: readonly number[], count: number): Promise<string> => {
      const ends = [...at.map((each) => each % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
      const opened = new Promise<Socket>((resolve) => (accepted = resolve));
      const client = connect((listener.address() as AddressInfo).port, "127.0.0.1");
      const connection = new Http1Connection(await opened, server);
      const whole = Promise.withResolvers<void>();
      let answer = "";
      client
        .on("close", () => whole.resolve())
        .on("data", (chunk) => {
          answer += chunk.toString("latin1");
          if ((answer.match(/HTTP\/1\.1 200/g) ?? []).length === count) whole.resolve();
        });
      let from = 0;
      for (const to of ends) {
        const piece = Buffer.from(bytes.slice(from, to), "latin1");
        connection.receive(piece, piece.length, false);
        piece.fill("!"); // received bytes are overwritten by later ones
        from = to;
      }
      await whole.promise;
      client.destroy();
      if (!connection.socket.closed) await once(connection.socket, "close");
      return answer;
    };
    await fc.assert(
      fc.asyncProperty(
        fc.array(written, { minLength: 1, maxLength: 3 }),
        fc.array(fc.nat(), { maxLength: 12 }),
        async (requests, at) => {
          seen = [];
          const answer = await run(requests.map(({ bytes }) => bytes).join(""), at, requests.length);
          expect(seen).toEqual(requests.map((each) => each.seen));
          expect(answer).not.toContain("400");
        },
      ),
      { numRuns: 200 },
    );
  });

  it("wait while their bytes are more than a head may have", async () => {
    const waiting: Http1Response[] = [];
    const { port, server } = await start((_request, response) => void waiting.push(response));
    const client = connect(port, "127.0.0.1");
    const request = `GET / HTTP/1.1\r\nx: ${"y".repeat(2000)}\r\n\r\n`;
    const count = 10_000;
    client.write(request.repeat(count));
    client.resume();
    while (waiting.length === 0) await new Promise(setImmediate);
    // The rest stays in the buffers of the system and of the client.
    expect(client.writableLength).toBeGreaterThan(0);
    expect(server.open).toBe(1);
    for (let answered = 0; answered < count;) {
      for (const response of waiting.splice(0)) {
        response.writeHead(204).end();
        answered++;
      }
      await new Promise(setImmediate);
    }
    client.destroy();
  });
});

describe("beside the parser of Node", () => {
  const seenByNode: Seen[] = [];
  const seen: Seen[] = [];
  const node = createServer(
    { maxHeaderSize: limits.headerBytesMax, requireHostHeader: false },
    (request, response) => {
      note(request as Http1Request, seenByNode);
      request.on("end", () => response.end());
    },
  );
  node.on("clientError", (_error, socket) => socket.end("HTTP/1.1 400 Bad\r\n\r\n"));
  const own = newServer((request, response) => {
    note(request, seen);
    request.on("end", () => response.end());
  });
  const portOf = (server: Server): number => (server.address() as AddressInfo).port;
  let port = 0;
  beforeAll(async () => {
    await once(node.listen(0, "127.0.0.1"), "listening");
    ({ port } = await own.listen({ host: "127.0.0.1", port: 0 }));
  });
  afterAll(async () => {
    node.close();
    await own.drain(0);
  });

  const nasty = fc.constantFrom(
    ...["\r", "\n", "\r\n", "\0", " ", "\t", ":", ",", ";", "0", "1", "-", "#", "\x80", "\x0b"],
    ...["content-length: 1\r\n", "transfer-encoding: chunked\r\n", "connection: close\r\n", "http://a"],
  );
  /** Blanks at the ends of a value have no meaning. */
  const plain = (requests: readonly Seen[]): unknown[] =>
    requests.map(({ headers, ...rest }) => ({ ...rest, headers: headers.map((each) => each.trim()) }));

  it("nothing is accepted that Node refuses, or reads in another way", async () => {
    let accepted = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(written, { minLength: 1, maxLength: 2 }),
        fc.nat(),
        fc.nat(3),
        nasty,
        async (requests, at, removed, inserted) => {
          seen.length = seenByNode.length = 0;
          const all = requests.map(({ bytes }) => bytes).join("");
          const position = at % (all.length + 1);
          const bytes = all.slice(0, position) + inserted + all.slice(position + removed);
          await Promise.all([exchange(port, bytes, true), exchange(portOf(node), bytes, true)]);
          accepted += seen.length;
          expect(plain(seen)).toEqual(plain(seenByNode).slice(0, seen.length));
        },
      ),
      { numRuns: 500 },
    );
    expect(accepted).toBeGreaterThan(100); // else it has shown nothing
  });
});

const get = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

describe("a response", () => {
  it.each<[string, string, (response: Http1Response) => void, string]>([
    ["of known length", get, (to) => to.end("ok"), "Content-Length: 2\r\n\r\nok"],
    [
      "in chunks",
      get,
      (to) => to.writeHead(200).end("ok"),
      "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ],
    [
      "in two chunks with trailers",
      get,
      (to) => {
        to.write("a");
        to.addTrailers({ "x-a": "b" });
        to.end(Buffer.alloc(5000, "b"));
      },
      `chunked\r\n\r\n1\r\na\r\n1388\r\n${"b".repeat(5000)}\r\n0\r\nx-a: b\r\n\r\n`,
    ],
    [
      "to HEAD",
      get.replace("GET", "HEAD"),
      (to) => to.writeHead(200, { "content-length": 2 }).end("ok"),
      "close\r\n\r\n",
    ],
    ["without content", get, (to) => to.writeHead(204).end("ok"), "Connection: close\r\n\r\n"],
    [
      "that is not modified",
      get,
      (to) => to.writeHead(304, { "content-length": "2" }).end(),
      "close\r\n\r\n",
    ],
    [
      "to HTTP/1.0",
      get.replace("1.1", "1.0"),
      (to) => to.writeHead(200).end("ok"),
      "Connection: close\r\n\r\nok",
    ],
    [
      "with fields set before and given",
      get,
      (to) =>
        to.setHeader("x-a", "1").setHeader("x-b", "1").writeHead(200, "OK", ["x-b", "2"]).end("é", "latin1"),
      "x-a: 1\r\nx-b: 2\r\n",
    ],
    [
      "with one field of several values",
      get,
      (to) => to.writeHead(200, { a: ["1", "2"] }).end(),
      "a: 1\r\na: 2\r\n",
    ],
    [
      "that is flushed before its body",
      get,
      (to) => (to.flushHeaders(), to.end("ok")),
      "\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ],
  ])("%s is written", async (_what, request, answer, expected) => {
    let isSent: boolean | undefined;
    const { port } = await start((_request, response) => {
      response.on("close", () => (isSent = response.writableFinished));
      answer(response);
    });
    expect(await exchange(port, request)).toContain(expected);
    expect(isSent).toBe(true);
  });

  it("keeps an HTTP/1.0 connection open only on request", async () => {
    const { port } = await start((_request, response) => void response.end("ok"));
    const kept = "GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n";
    const answer = await exchange(port, `${kept}GET / HTTP/1.0\r\n\r\n${kept}`);
    expect(answer.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
    expect(answer).toMatch(/Connection: keep-alive[^]*Connection: close/);
  });

  it.each<[string, (response: Http1Response) => void]>([
    ["longer", (to) => to.writeHead(200, { "content-length": 1 }).end("ok")],
    ["shorter", (to) => to.writeHead(200, { "content-length": 3 }).end("ok")],
    [
      "longer, in parts",
      (to) => {
        to.writeHead(200, { "content-length": 3 }).write("ok");
        to.end("HTTP/1.1 200 OK");
      },
    ],
  ])("whose body is %s than announced ends the connection", async (_what, answer) => {
    let closed: boolean | undefined;
    const { port } = await start((_request, response) => {
      response.on("close", () => (closed = response.writableFinished));
      answer(response);
    });
    const [head = "", body = ""] = (await exchange(port, get.replace("close", "x"))).split("\r\n\r\n");
    expect([head.slice(0, 15), body.length < 3, closed]).toEqual(["HTTP/1.1 200 OK", true, false]);
  });

  it.each<[string, (response: Http1Response) => void]>([
    ["a line break in a value", (to) => to.writeHead(200, { a: "b\r\nc: d" })],
    ["a line break in a name", (to) => to.writeHead(200, ["a\r\nb", "c"])],
    ["a line break in the status text", (to) => to.writeHead(200, "OK\r\na: b")],
    ["two lengths", (to) => to.writeHead(200, ["content-length", "1", "Content-Length", "1"])],
    ["a length that is no number", (to) => to.writeHead(200, ["content-length", "1, 1"])],
    ["another coding", (to) => to.writeHead(200, ["transfer-encoding", "gzip"])],
    ["a value that is missing", (to) => to.writeHead(200, { a: undefined })],
    ["a status of four digits", (to) => to.writeHead(2000)],
  ])("with %s is refused, so that another is possible", async (_what, answer) => {
    const { port } = await start((_request, response) => {
      expect(() => answer(response)).toThrow();
      response.end("another");
    });
    expect(await exchange(port, get)).toMatch(/Content-Length: 7\r\n\r\nanother$/);
  });

  it("tells its writer to wait, and when to go on", async () => {
    const part = Buffer.alloc(64 * 1024, "x");
    let written = 0;
    const { port } = await start((_request, response) => {
      response.writeHead(200, { "content-length": part.length * 200 });
      const go = (): void => {
        while (written < 200) {
          written++;
          if (!response.write(part)) {
            response.once("drain", go);
            return;
          }
        }
        response.end();
      };
      go();
    });
    const socket = connect(port, "127.0.0.1").pause();
    socket.write(get);
    await once(socket, "connect");
    await expect.poll(() => written).toBeGreaterThan(0);
    expect(written).toBeLessThan(200);
    let bytes = 0;
    socket.on("data", (chunk) => (bytes += chunk.length));
    await once(socket.resume(), "close");
    expect(bytes).toBeGreaterThan(part.length * 200);
  });

  it("closes with its visitor, and so does the request", async () => {
    const closed: string[] = [];
    const done = Promise.withResolvers<void>();
    const { port } = await start((request, response) => {
      request.on("error", ({ message }) => closed.push(message));
      response.on("close", () => {
        closed.push(`finished: ${response.writableFinished}`);
        done.resolve();
      });
      client.destroy();
    });
    const client = connect(port, "127.0.0.1");
    client.write("POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nhe");
    await done.promise;
    await new Promise(setImmediate);
    expect(closed.toSorted()).toEqual(["aborted", "finished: false"]);
  });
});

describe("a connection", () => {
  it("gives the bytes behind an upgrade to its handler", async () => {
    const { port } = await start(() => {});
    const upgrade = "GET / HTTP/1.1\r\nconnection: keep-alive, Upgrade\r\nupgrade: websocket\r\n\r\nfirst";
    expect(await exchange(port, upgrade)).toBe("HTTP/1.1 101 Joined\r\n\r\nfirst");
  });

  it("gets 100 Continue when the body is read", async () => {
    const { port } = await start((request, response) => {
      expect(request.readableFlowing).toBeNull();
      request.resume().on("end", () => response.end("ok"));
    });
    const head = "POST / HTTP/1.1\r\nconnection: close\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n";
    const socket = connect(port, "127.0.0.1");
    socket.write(head);
    expect(String(await once(socket, "data"))).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    socket.write("ab");
    expect(String(await once(socket, "data"))).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(await exchange(port, head.replace("100-continue", "x"))).toMatch(/^HTTP\/1\.1 417 /);
  });

  it.each([
    ["no byte", "", "late"],
    ["half a head", "GET / HTTP/1.1\r\na: b", "late"],
  ])("with %s gets an answer that says so", async (_what, bytes, reason) => {
    const { port } = await start(() => {}, { headTimeoutMs: 30 });
    expect(await exchange(port, bytes)).toBe(`HTTP/1.1 400 ${reason}\r\n\r\n`);
  });

  it.each([
    [
      "a request whose end is missing",
      "POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\na",
      { idleTimeoutMs: 30 },
    ],
    ["nothing after its request", "GET /served HTTP/1.1\r\n\r\n", { keepAliveTimeoutMs: 30 }],
  ])("with %s is closed", async (_what, bytes, some) => {
    const { port } = await start(
      (request, response) => request.url === "/served" && response.writeHead(204).end(),
      some,
    );
    expect(await exchange(port, bytes)).toMatch(/^$|^HTTP\/1\.1 204 /);
  });

  it("of a server that ends gets this in its answer, and one without a request closes", async () => {
    const held: Http1Response[] = [];
    const { port, server } = await start((_request, response) => void held.push(response));
    const idle = exchange(port, "");
    const busy = exchange(port, "GET / HTTP/1.1\r\n\r\n");
    while (held.length === 0 || server.open < 2) await new Promise(setImmediate);
    const drained = server.drain(10_000);
    expect(await idle).toBe("");
    held[0]!.end("ok");
    expect(await busy).toContain("Connection: close\r\n");
    await drained;
    expect(server.open).toBe(0);
  });
});
