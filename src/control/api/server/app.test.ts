import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { Readable, Writable } from "node:stream";
import { pino } from "pino";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { z } from "zod";
import { Actor } from "../../access/actor.ts";
import { createApi, type ApiOptions } from "./app.ts";
import { createApiServer } from "./listener.ts";
import { operationsFor } from "../operation.ts";
import { RateLimiter } from "./rate-limit.ts";

const { operation } = operationsFor<object>();

const lines: string[] = [];
const log = new Writable({
  write: (chunk: Buffer, _encoding, done) => (lines.push(chunk.toString()), done()),
});
const actor = new Actor("token", "t", null, undefined, {
  belongsTo: () => true,
  may: () => true,
});
const app = createApi({
  services: {
    storage: { following: undefined },
    tokens: { authenticate: async () => ({ actor }) },
    audit: {
      perform: async (_operation: never, _call: never, _before: never, handle: () => never) => handle(),
      noteRefusal() {},
    },
  } as unknown as ApiOptions["services"],
  operations: [
    operation({
      id: "fails",
      method: "GET",
      path: "/fails",
      summary: "Fails",
      access: { scope: "caller" },
      result: z.object({ ok: z.boolean() }),
      handle: async () => {
        throw new Error("the password of the database is hunter2");
      },
    }),
    operation({
      id: "races",
      method: "GET",
      path: "/races",
      summary: "Writes to a zone that is deleted concurrently",
      access: { scope: "caller" },
      result: z.object({ ok: z.boolean() }),
      handle: async () => {
        throw Object.assign(new Error("FOREIGN KEY constraint failed"), { errcode: 787 });
      },
    }),
    operation({
      id: "strays",
      method: "GET",
      path: "/strays",
      summary: "Returns a result that does not match its schema",
      access: { scope: "caller" },
      result: z.object({ ok: z.boolean() }),
      handle: async () => ({ ok: "yes" }) as never,
    }),
    operation({
      id: "takes",
      audit: "none",
      method: "POST",
      path: "/takes",
      summary: "Takes a body",
      access: { scope: "caller" },
      body: z.object({ text: z.string() }),
      result: z.object({ length: z.int() }),
      handle: async ({ body }) => ({ length: body.text.length }),
    }),
  ].map((each) => ({ operation: each, services: {} })),
  idParameters: new Set(),
  logger: pino(log),
  rateLimit: 0,
  rateWindowSeconds: 300,
  bodyBytesMax: 1000,
  validateResults: true,
});
const server = createApiServer(app, { faults: async () => ["database"] });
let base: string;
beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());
const get = (path: string): Promise<Response> =>
  fetch(`${base}${path}`, { headers: { authorization: "Bearer token" } });

it("gives the caller a request id and the log the details", async () => {
  const answer = await get("/fails");
  const id = answer.headers.get("x-request-id")!;
  const text = await answer.text();
  expect([answer.status, text.includes(id), text.includes("hunter2")]).toEqual([500, true, false]);
  const logged = lines.find((line) => line.includes(id))!;
  expect(JSON.parse(logged)).toMatchObject({
    operation: "fails",
    request_id: id,
    err: { message: expect.stringContaining("hunter2") as string },
  });
});

it("answers 404 if the resource was deleted during the call", async () => {
  const answer = await get("/races");
  expect([answer.status, await answer.json()]).toMatchObject([404, { errors: [{ code: 1003 }] }]);
});

it("fails in tests if a result does not match its schema", async () => {
  expect((await get("/strays")).status).toBe(500);
});

it("reads a body in pieces up to its limit, even with a wrong Content-Length", async () => {
  const post = async (pieces: (string | Buffer)[]): Promise<[number, string]> => {
    const body = Readable.toWeb(Readable.from(pieces));
    const headers = { authorization: "Bearer token", "content-type": "application/json" };
    const answer = await fetch(`${base}/takes`, {
      method: "POST",
      headers,
      body,
      duplex: "half",
    });
    return [answer.status, await answer.text()];
  };
  expect(await post(['{"text":', '"ab', 'c"}'])).toMatchObject([200, expect.stringContaining('"length":3')]);
  expect((await post(['{"text":"', Buffer.from([0xff]), '"}']))[0]).toBe(400);
  const [status, text] = await post(Array.from({ length: 50 }, () => " ".repeat(1000)));
  expect([status, text]).toEqual([413, expect.stringContaining("1000")]);
});

it("refuses a body that is too large without 100 Continue, and asks for one that fits", async () => {
  const { port } = server.address() as AddressInfo;
  const answered = async (length: number, body: string): Promise<string> => {
    const socket = connect(port, "127.0.0.1");
    const head = "host: a\r\nauthorization: Bearer token\r\ncontent-type: application/json";
    socket.write(
      `POST /takes HTTP/1.1\r\n${head}\r\nconnection: close\r\nexpect: 100-continue\r\ncontent-length: ${length}\r\n\r\n`,
    );
    let text = "";
    for await (const chunk of socket) {
      text += String(chunk);
      if (/^HTTP\/1\.1 100 Continue\r\n\r\n$/.test(text)) socket.write(body);
    }
    return text;
  };
  expect(await answered(1_000_000, "")).toMatch(/^HTTP\/1\.1 413 /);
  const body = '{"text":"abc"}';
  expect(await answered(body.length, body)).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /);
});

it("logs an aborted upload as information, not as an error", async () => {
  const { port } = server.address() as AddressInfo;
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  socket.write(
    `POST /takes HTTP/1.1\r\nhost: a\r\nauthorization: Bearer token\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"te`,
  );
  const [request] = (await once(server, "request")) as [IncomingMessage];
  const closed = new Promise((resolve) => request.socket.once("close", resolve));
  socket.resetAndDestroy();
  await closed;
  const logged = (): { level: number }[] =>
    lines.filter((line) => line.includes('"takes"')).map((line) => JSON.parse(line) as { level: number });
  await vi.waitFor(() => expect(logged()).toMatchObject([{ level: 30, msg: "the client disconnected" }]));
});

it("is alive but not ready while a part is missing, and names that part", async () => {
  expect((await get("/healthz")).status).toBe(200);
  const ready = await get("/readyz");
  expect([ready.status, await ready.json()]).toEqual([
    503,
    { status: "unavailable", not_ready: ["database"] },
  ]);
});

it("limits each caller's calls in windows", () => {
  let now = 1_000_000;
  const limiter = new RateLimiter(2, 10_000, () => now);
  expect([limiter.take("a"), limiter.take("a"), limiter.take("b")]).toEqual([0, 0, 0]);
  now += 4_000;
  expect(limiter.take("a")).toBe(6);
  now += 6_000;
  expect(limiter.take("a")).toBe(0);
});
