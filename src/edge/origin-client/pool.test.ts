import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { PassThrough, Readable } from "node:stream";
import { describe, expect, it, onTestFinished } from "vitest";
import { freePort } from "../../../test/helpers/free-port.ts";
import { mebibyte } from "../../platform/bytes.ts";
import { CoarseClock } from "./coarse-clock.ts";
import type { ClientLimits } from "./connection.ts";
import { StaleConnection, type ResponseReceiver, type ClientRequest, type Exchange } from "./exchange.ts";
import { OriginPool } from "./pool.ts";

const limits: ClientLimits = {
  connectTimeoutMs: 60_000,
  firstByteTimeoutMs: 60_000,
  idleTimeoutMs: 60_000,
  stallTimeoutMs: 60_000,
  headBytesMax: 16_000,
};
const hello = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

/** An origin of raw sockets, and a pool of connections to it. */
async function start(
  onSocket: (socket: Socket, number: number) => void,
  {
    connectionsMax = 8,
    port,
    ...changed
  }: Partial<ClientLimits> & { connectionsMax?: number; port?: number } = {},
): Promise<{ pool: OriginPool; sockets: Socket[] }> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on("error", () => {}));
    onSocket(socket, sockets.length);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const own = { ...limits, ...changed };
  const clock = new CoarseClock([
    own.connectTimeoutMs,
    own.firstByteTimeoutMs,
    own.idleTimeoutMs,
    own.stallTimeoutMs,
  ]);
  const to = {
    address: "127.0.0.1",
    port: port ?? (server.address() as AddressInfo).port,
    tls: undefined,
    localAddress: undefined,
    ca: undefined,
  };
  const pool = new OriginPool(to, own, connectionsMax, clock);
  onTestFinished(() => {
    pool.destroy();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { pool, sockets };
}

const get: ClientRequest = { method: "GET", path: "/", headers: ["host", "a"], body: null };
const post = (body: Readable, ...headers: string[]): ClientRequest => ({
  ...get,
  method: "POST",
  headers,
  body,
});

interface Sent {
  answer: Promise<string>;
  exchange: Exchange;
}

/** Sends a request, and collects the body of its answer. */
function send(pool: OriginPool, request: ClientRequest = get, own: Partial<ResponseReceiver> = {}): Sent {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let body = "";
  let exchange: Exchange | undefined;
  pool.send(request, {
    began: (each) => (exchange = each),
    head: () => {},
    data: (chunk) => (body += chunk.toString()),
    end: (last) => resolve(body + last),
    failed: reject,
    ...own,
  });
  promise.catch(() => {}); // awaited by the test
  return { answer: promise, exchange: exchange! };
}

describe("visitors who have stopped to read", () => {
  const head = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
  const begun = (pool: OriginPool): Sent & { first: Promise<unknown> } => {
    const { promise: first, resolve } = Promise.withResolvers<unknown>();
    return { ...send(pool, get, { data: resolve }), first };
  };

  it("give up their connections while requests wait for one, those who stopped first before others", async () => {
    const { pool, sockets } = await start(
      (socket, number) => socket.on("data", () => socket.write(number > 3 ? hello : `${head}a`)),
      { connectionsMax: 3, stallTimeoutMs: 50 },
    );
    const all = [begun(pool), begun(pool), begun(pool)] as const;
    const [reading, first, second] = all;
    await Promise.all(all.map(({ first: part }) => part));
    first.exchange.pause();
    second.exchange.pause();
    expect(await send(pool).answer).toBe("hello");
    await expect(first.answer).rejects.toThrow("the visitor has stopped reading");
    second.exchange.resume();
    for (const socket of sockets.slice(0, 3)) socket.write("b".repeat(8));
    expect(await Promise.all([reading.answer, second.answer])).toEqual(["", ""]);
  });
});

describe("connections", () => {
  it("are used again, the last one first, and no more are opened than allowed", async () => {
    const { pool, sockets } = await start((socket) => socket.on("data", () => socket.write(hello)), {
      connectionsMax: 3,
    });
    await Promise.all(Array.from({ length: 20 }, () => send(pool).answer));
    expect(sockets.length).toBe(3);
    for (let i = 0; i < 5; i++) expect(await send(pool).answer).toBe("hello");
    expect(sockets.length).toBe(3);
  });

  it("that the origin has closed with a request on them fail as stale, and a fresh one is opened", async () => {
    let requests = 0;
    const { pool, sockets } = await start((socket) =>
      socket.on("data", () => {
        if (++requests === 2) socket.destroy();
        else socket.write(hello);
      }),
    );
    await send(pool).answer;
    await expect(send(pool).answer).rejects.toThrow(StaleConnection);
    expect(await send(pool, { ...get, isFresh: true }).answer).toBe("hello");
    expect(sockets.length).toBe(2);
  });

  it("that are new and close without an answer are not stale", async () => {
    const { pool } = await start((socket) => socket.once("data", () => socket.destroy()));
    const error: unknown = await send(pool).answer.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "ECONNRESET" });
    expect(error).not.toBeInstanceOf(StaleConnection);
  });

  it("with a second answer behind the first carry no other request", async () => {
    const poison = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison";
    const { pool, sockets } = await start((socket, number) =>
      socket.once("data", () => socket.write(number === 1 ? hello + poison : hello)),
    );
    expect(await send(pool).answer).toBe("hello");
    expect(await send(pool).answer).toBe("hello");
    expect(sockets.length).toBe(2);
  });

  it("on which an answer comes without a request are closed", async () => {
    const { pool, sockets } = await start((socket) => socket.on("data", () => socket.write(hello)));
    await send(pool).answer;
    sockets[0]!.write(hello.replace("hello", "wrong"));
    await once(sockets[0]!, "close");
    expect(await send(pool).answer).toBe("hello");
    expect(sockets.length).toBe(2);
  });

  it("are closed before the origin closes them, as it has announced", async () => {
    const closing = hello.replace("\r\n\r\n", "\r\nkeep-alive: timeout=1\r\n\r\n");
    const { pool, sockets } = await start((socket) => socket.on("data", () => socket.write(closing)));
    await send(pool).answer;
    await once(sockets[0]!, "close");
    expect(await send(pool).answer).toBe("hello");
  });

  it("that fail to open fail one request each", async () => {
    const { pool } = await start(() => {}, { port: await freePort() });
    const errors = await Promise.all(
      Array.from({ length: 20 }, () => send(pool).answer.catch((error: unknown) => error)),
    );
    for (const error of errors) expect(error).toMatchObject({ code: "ECONNREFUSED", syscall: "connect" });
  });

  it("end with their requests when the pool is closed, and at once when it is destroyed", async () => {
    const { pool, sockets } = await start((socket) => socket.on("data", () => {}));
    const first = send(pool);
    await expect.poll(() => sockets[0]?.bytesRead).toBeGreaterThan(0);
    pool.close();
    sockets[0]!.write(hello);
    expect(await first.answer).toBe("hello");
    await once(sockets[0]!, "close");
    const second = send(pool);
    pool.destroy();
    await expect(second.answer).rejects.toThrow("are being closed");
  });
});

describe("a request", () => {
  it("that waits for a connection leaves when it is aborted", async () => {
    const { pool, sockets } = await start((socket) => socket.on("data", () => {}), { connectionsMax: 1 });
    const first = send(pool);
    await expect.poll(() => sockets[0]?.bytesRead).toBeGreaterThan(0);
    const second = send(pool);
    const third = send(pool);
    second.exchange.abort(new Error("left"));
    await expect(second.answer).rejects.toThrow("left");
    first.exchange.abort(new Error("left"));
    await expect.poll(() => sockets[1]?.bytesRead).toBeGreaterThan(0);
    sockets[1]!.write(hello);
    expect(await third.answer).toBe("hello");
  });

  it("that is aborted after its end does not disturb the next one", async () => {
    const { pool, sockets } = await start((socket) => socket.on("data", () => socket.write(hello)));
    const first = send(pool);
    await first.answer;
    const second = send(pool);
    first.exchange.abort(new Error("too late"));
    first.exchange.pause();
    expect(await second.answer).toBe("hello");
    expect(sockets.length).toBe(1);
  });

  it.each([
    ["path", { path: "/ HTTP/1.1\r\nx: y" }],
    ["path", { path: "http://b.example/" }],
    ["method", { method: "GET /a" }],
    ["method", { method: "CONNECT" }],
    ["header", { headers: ["x", "y\r\nz: 1"] }],
    ["header", { headers: ["x", "y\nz: 1"] }],
    ["header", { headers: ["x", "y\0"] }],
    ["header", { headers: ["x", "\u0100"] }],
    ["header", { headers: ["x\r\ny", "z"] }],
    ["header", { headers: ["x ", "z"] }],
    ["header", { headers: ["", "z"] }],
    ["header", { headers: ["Transfer-Encoding", "chunked"] }],
    ["header", { headers: ["Connection", "close"] }],
    ["header", { headers: ["content-length", "0", "Content-Length", "0"] }],
    ["header", { headers: ["content-length", "+5"] }],
  ])("with an ambiguous %s is not sent: %j", async (what, changed) => {
    const { pool, sockets } = await start(() => {});
    await expect(send(pool, { ...get, ...changed }).answer).rejects.toThrow(`Expected a valid ${what}`);
    expect(sockets).toEqual([]);
  });

  it.each([
    ["longer", "123456"],
    ["shorter", "1234"],
  ])("with a body %s than announced is broken off, and no byte too many is sent", async (what, text) => {
    let received = "";
    const { pool, sockets } = await start((socket) => socket.on("data", (chunk) => (received += chunk)));
    const body = new PassThrough();
    const { answer } = send(pool, post(body, "content-length", "5"));
    body.end(text);
    await expect(answer).rejects.toThrow(`the body is ${what} than its Content-Length`);
    await expect.poll(() => sockets[0]?.closed).toBe(true);
    expect(received).not.toContain("6");
  });

  it("with a body that fails is broken off", async () => {
    let received = "";
    const { pool, sockets } = await start((socket) => socket.on("data", (chunk) => (received += chunk)));
    const body = new PassThrough();
    const { answer } = send(pool, post(body));
    body.write("half");
    await expect.poll(() => received).toContain("half");
    body.destroy(new Error("gone"));
    await expect(answer).rejects.toThrow("gone");
    await expect.poll(() => sockets[0]?.closed).toBe(true);
  });

  it("with a receiver that throws fails, and its connection is closed", async () => {
    const { pool, sockets } = await start((socket) => socket.on("data", () => socket.write(hello)));
    const head = (): never => {
      throw new Error("thrown");
    };
    for (const own of [{ head }, { end: head }])
      await expect(send(pool, get, own).answer).rejects.toThrow("thrown");
    expect(await send(pool).answer).toBe("hello");
    expect(sockets.length).toBe(3);
  });
});

describe("times", () => {
  it.each([
    ["the head does not come", ""],
    ["only a part of the head comes", "HTTP/1.1 200 OK\r\n"],
    ["only interim answers come", "HTTP/1.1 102 Processing\r\n\r\n"],
  ])("%s: 524", async (_what, sent) => {
    const { pool } = await start((socket) => socket.once("data", () => socket.write(sent)), {
      firstByteTimeoutMs: 50,
      idleTimeoutMs: 50,
    });
    await expect(send(pool).answer).rejects.toMatchObject({ code: 524 });
  });

  it.each([
    ["a head that comes byte by byte", "HTTP/1.1 200 OK\r\nx: ", "x"],
    ["interim answers", "", "HTTP/1.1 102 Processing\r\n\r\n"],
  ])("are not prolonged by %s", async (_what, first, next) => {
    const { pool } = await start(
      (socket) => {
        socket.once("data", () => {
          socket.write(first);
          const timer = setInterval(() => socket.write(next), 20);
          socket.on("close", () => clearInterval(timer));
        });
      },
      { firstByteTimeoutMs: 200, idleTimeoutMs: 100 },
    );
    await expect(send(pool).answer).rejects.toMatchObject({ code: 524 });
  });

  it("do not run while the visitor sends, although an interim answer came", async () => {
    const { pool } = await start(
      (socket) => {
        socket.once("data", () => socket.write("HTTP/1.1 100 Continue\r\n\r\n"));
        socket.on("data", (data) => data.includes("last") && socket.write(hello));
      },
      { firstByteTimeoutMs: 50, idleTimeoutMs: 50 },
    );
    const body = new PassThrough();
    const { answer } = send(pool, post(body));
    body.write("first");
    setTimeout(() => body.end("last"), 300);
    expect(await answer).toBe("hello");
  });

  it("run for the rest of an answer that began before the end of the body", async () => {
    const { pool } = await start(
      (socket) => {
        socket.once("data", () => socket.pause().write(hello.slice(0, -1)));
        setTimeout(() => socket.resume(), 100);
      },
      { firstByteTimeoutMs: 60_000, idleTimeoutMs: 300 },
    );
    const body = new PassThrough();
    const { answer } = send(pool, post(body), { head: () => body.end(Buffer.alloc(16 * mebibyte)) });
    body.write("first");
    await expect(answer).rejects.toThrow("stopped in the middle");
  });

  it("the answer stops", async () => {
    const { pool } = await start((socket) => socket.once("data", () => socket.write(hello.slice(0, -1))), {
      idleTimeoutMs: 50,
    });
    await expect(send(pool).answer).rejects.toThrow("stopped in the middle");
  });

  it("no connection becomes free: 524", async () => {
    const { pool } = await start((socket) => socket.resume(), {
      connectionsMax: 1,
      connectTimeoutMs: 20,
      firstByteTimeoutMs: 200,
    });
    const [first, second] = [send(pool), send(pool)];
    await expect(first.answer).rejects.toMatchObject({ code: 524 });
    await expect(second.answer).rejects.toMatchObject({ code: 524 });
  });
});

describe("back-pressure", () => {
  it("a paused answer stays with the origin, until it is resumed", async () => {
    const total = 64 * mebibyte;
    let written = 0;
    const { pool, sockets } = await start((socket) => {
      const write = (): void => {
        while (written < total && !socket.writableNeedDrain) {
          socket.write(Buffer.alloc(mebibyte));
          written += mebibyte;
        }
      };
      socket.on("drain", write).once("data", () => {
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${total}\r\n\r\n`);
        write();
      });
    });
    let bytes = 0;
    let exchange: Exchange | undefined;
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    pool.send(get, {
      began: (each) => (exchange = each),
      head: () => {},
      data: (chunk) => {
        if (bytes === 0) exchange!.pause();
        bytes += chunk.length;
      },
      end: resolve,
      failed: reject,
    });
    await expect.poll(() => sockets[0]?.writableNeedDrain === true && bytes > 0).toBe(true);
    expect(bytes).toBeLessThan(mebibyte);
    exchange!.resume();
    await promise;
    expect(bytes).toBe(total);
  });

  it("a body is read only as fast as the origin takes it", async () => {
    let socket: Socket | undefined;
    const { pool } = await start((each) => (socket = each.pause()));
    let made = 0;
    const total = 64 * mebibyte;
    const body = new Readable({
      read() {
        if (made >= total) this.push(null);
        else this.push(Buffer.alloc(64 * 1024));
        made += 64 * 1024;
      },
    });
    const { answer } = send(pool, post(body, "content-length", String(total)));
    await expect.poll(() => body.isPaused()).toBe(true);
    expect(made).toBeLessThan(total);
    let received = 0;
    socket!.on("data", (chunk) => {
      received += chunk.length;
      if (received > total) socket!.write(hello);
    });
    socket!.resume();
    expect(await answer).toBe("hello");
  });
});
