import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import { mkdtempSync } from "node:fs";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import { ProcessCalls } from "./calls.ts";
import { FailedCall } from "./call-messages.ts";

/** Two processes that call each other, and a server that passes requests from one to the other. */
const ends: (() => void)[] = [];
afterEach(() => ends.splice(0).forEach((end) => end()));

interface Pair {
  edge: ProcessCalls;
  main: ProcessCalls;
  faults: unknown[];
}

async function startPair(isMainThere = true): Promise<Pair> {
  const folder = mkdtempSync(join(tmpdir(), "selvedge-calls-"));
  const mainPath = join(folder, "main.sock");
  const faults: unknown[] = [];
  const [edge, main] = [
    new ProcessCalls(join(folder, "edge.sock"), mainPath),
    new ProcessCalls(mainPath, mainPath),
  ];
  ends.push(
    () => edge.close(),
    () => main.close(),
  );
  await edge.listen(() => {});
  if (isMainThere) await main.listen((error) => faults.push(error));
  return { edge, main, faults };
}

type Passed = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** The port of a server that answers with `pass`, and with 502 when it rejects. */
async function serverOf(pass: Passed): Promise<number> {
  const server = createServer({ maxHeaderSize: 256 * 1024 }, (incoming, response) => {
    pass(incoming, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end(error instanceof FailedCall ? JSON.stringify(error.details) : "other");
    });
  });
  ends.push(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

const forwarding =
  ({ edge }: Pair, given = "détails"): Passed =>
  async (incoming, response) =>
    edge.forward("work", { given }, { url: new URL("http://host/path?q"), request: incoming, response });

interface ReceivedResponse {
  status: number;
  headers: Record<string, unknown>;
  body: string;
}

const ask = (
  port: number,
  method: string,
  body?: Buffer,
  headers: Record<string, string> = {},
): Promise<ReceivedResponse> =>
  new Promise((resolve, reject) => {
    const options = { port, host: "127.0.0.1", method, headers, agent: false, maxHeaderSize: 1024 * 1024 };
    const asked = request(options, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", reject);
      response.on("end", () =>
        resolve({
          status: response.statusCode!,
          headers: response.headers,
          body: Buffer.concat(chunks).toString(),
        }),
      );
    });
    asked.on("error", reject).end(body);
  });

describe("a forwarded request", () => {
  it("arrives with its details, method, headers and body, and its answer comes back", async () => {
    const pair = await startPair();
    pair.main.serve<{ given: string }>("work", async ({ given }, { url, request: incoming, response }) => {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
      const seen = [
        given,
        incoming.method,
        url.href,
        incoming.headers["x-own"],
        incoming.headers["x-selvedge-call"],
      ];
      response.writeHead(203, "Well", ["x-seen", "1", "set-cookie", "a=1", "set-cookie", "b=2"]);
      response.end(JSON.stringify([...seen, Buffer.concat(chunks).length]));
    });
    const port = await serverOf(forwarding(pair));
    for (const length of [0, 5, 3_000_000]) {
      const body = length === 0 ? undefined : Buffer.alloc(length, "x");
      const { status, headers, body: text } = await ask(port, body ? "PUT" : "GET", body, { "x-own": "ö" });
      expect([status, headers["x-seen"], headers["set-cookie"]]).toEqual([203, "1", ["a=1", "b=2"]]);
      const method = length === 0 ? "GET" : "PUT";
      expect(JSON.parse(text)).toEqual(["détails", method, "http://host/path?q", "ö", null, length]);
    }
  });

  it("fails as the other process says, also when the body has not been read", async () => {
    const pair = await startPair();
    pair.main.serve("work", async () => Promise.reject(new FailedCall({ why: "no" })));
    const port = await serverOf(forwarding(pair));
    for (const body of [undefined, Buffer.alloc(2_000_000)])
      expect(await ask(port, "POST", body)).toMatchObject({ status: 502, body: `{"why":"no"}` });
    expect(pair.faults).toEqual([]);
  });

  it("is answered with as many headers as a script may send, also when it fails", async () => {
    const pair = await startPair();
    const long = "h".repeat(120 * 1024);
    pair.main.serve("work", async (_, { request: { method }, response }) => {
      if (method === "PUT") throw new FailedCall({ why: long });
      response.writeHead(200, { "x-long": long }).end();
    });
    const port = await serverOf(forwarding(pair));
    expect((await ask(port, "GET")).headers["x-long"]).toBe(long);
    expect(await ask(port, "PUT")).toMatchObject({ status: 502, body: JSON.stringify({ why: long }) });
  });

  it("may have as long a head as a script may send, in the details too", async () => {
    const pair = await startPair();
    const long = "ÿ".repeat(126 * 1024);
    pair.main.serve<{ given: string }>("work", async ({ given }, { request: { headers }, response }) => {
      response.end(String(given === long && headers["x-long"] === long));
    });
    const port = await serverOf(forwarding(pair, long));
    expect(await ask(port, "GET", undefined, { "x-long": long })).toMatchObject({
      status: 200,
      body: "true",
    });
  });

  it("fails without details for a fault, which the other process notes", async () => {
    const pair = await startPair();
    pair.main.serve("work", async () => Promise.reject(new Error("a secret")));
    const port = await serverOf(forwarding(pair));
    expect(await ask(port, "GET")).toMatchObject({ status: 502, body: "{}" });
    expect(pair.faults).toHaveLength(1);
  });

  it("is not failed by an answer that only looks like a failure", async () => {
    const pair = await startPair();
    pair.main.serve("work", async (_, { response }) => {
      response.writeHead(200, { "x-selvedge-call-failed": `guess {"why":"forged"}` }).end("answer");
    });
    const port = await serverOf(forwarding(pair));
    expect(await ask(port, "GET")).toMatchObject({ status: 200, body: "answer" });
  });

  it("waits for a process that is started again", async () => {
    const pair = await startPair(false);
    pair.main.serve("work", async (_, { response }) => void response.end("late"));
    const asked = ask(await serverOf(forwarding(pair)), "POST", Buffer.from("body"));
    await delay(300);
    await pair.main.listen(() => {});
    expect((await asked).body).toBe("late");
  });

  it("ends in the other process when the client leaves", async () => {
    const pair = await startPair();
    const left = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    pair.main.serve("work", async (_, { response }) => {
      response.writeHead(200).write("begun");
      response.once("close", () => left.resolve());
      begun.resolve();
    });
    const port = await serverOf(forwarding(pair));
    const asked = request({ port, host: "127.0.0.1", agent: false })
      .on("error", () => {})
      .end();
    await begun.promise;
    asked.destroy();
    await left.promise;
  });
});

it("an upgrade whose client left before the other process was there does not reach it", async () => {
  const pair = await startPair(false);
  let isCalled = false;
  const noRequest = async (): Promise<void> => {};
  pair.main.serve("work", noRequest, async () => void (isCalled = true));
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
  const joined = pair.edge.join("work", {}, { headers: [], socket: socket as Socket, head: Buffer.alloc(0) });
  socket.destroy();
  await pair.main.listen(() => {});
  await joined;
  await pair.edge.ask("unknown", {}).catch(() => {}); // later than the upgrade would be
  expect(isCalled).toBe(false);
});

/** A process whose queue has room for few connections, and which accepts none until it is woken. */
const busyProcess = `
  const { workerData: { path, wakes }, parentPort } = require("node:worker_threads");
  const server = require("node:http").createServer((request, response) => response.end("{}"));
  server.listen({ path, backlog: 1 }, () => {
    parentPort.postMessage("listens");
    Atomics.wait(new Int32Array(wakes), 0, 0);
  });`;

it("calls wait while the queue of a busy process is full", async () => {
  const { edge } = await startPair(false);
  const path = join(mkdtempSync(join(tmpdir(), "selvedge-calls-")), "busy.sock");
  const wakes = new SharedArrayBuffer(4);
  const busy = new Worker(busyProcess, { eval: true, workerData: { path, wakes } });
  ends.push(() => void busy.terminate());
  await new Promise((resolve) => busy.once("message", resolve));
  const answers = Promise.all(Array.from({ length: 20 }, async () => edge.ask("work", {}, path)));
  const state = await Promise.race([answers.then(() => "answered"), delay(300, "waits")]).catch(
    () => "refused",
  );
  expect(state).toBe("waits");
  Atomics.store(new Int32Array(wakes), 0, 1);
  Atomics.notify(new Int32Array(wakes), 0);
  expect(await answers).toEqual(Array.from({ length: 20 }, () => ({})));
});

it("an answer to a question is JSON", async () => {
  const pair = await startPair();
  pair.main.serve<{ a: number }>(
    "sum",
    async ({ a }, { response }) => void response.end(JSON.stringify({ b: a + 1 })),
  );
  expect(await pair.edge.ask("sum", { a: 1 })).toEqual({ b: 2 });
  await expect(pair.edge.ask("unknown", {})).rejects.toBeInstanceOf(FailedCall);
});

it("a call that is ended while its connection is made ends then", async () => {
  const { edge, main } = await startPair();
  main.serve("work", async () => new Promise<never>(() => {}));
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
  const joining = { headers: [], socket: socket as Socket, head: Buffer.alloc(0) };
  const ending = new AbortController();
  const joined = edge.join("work", {}, joining, main.path, ending.signal);
  const answer = edge.ask("work", {}, main.path, ending.signal);
  const lost = new Error("lost");
  ending.abort(lost);
  await expect(joined).rejects.toBe(lost); // so that its caller ends the connection
  await expect(answer).rejects.toThrow("socket hang up");
});
