import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import { mkdtempSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { ProcessCalls } from "./calls.ts";
import { FailedCall } from "./call-messages.ts";

/** Two processes that call each other, and a server that passes its requests on from one to the other. */
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
  const server = createServer((incoming, response) => {
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
  ({ edge }: Pair): Passed =>
  async (incoming, response) =>
    edge.forward(
      "work",
      { given: "détails" },
      { url: new URL("http://host/path?q"), request: incoming, response },
    );

interface Answer {
  status: number;
  headers: Record<string, unknown>;
  body: string;
}

const ask = (
  port: number,
  method: string,
  body?: Buffer,
  headers: Record<string, string> = {},
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const asked = request({ port, host: "127.0.0.1", method, headers, agent: false }, (response) => {
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

it("an answer to a question is JSON", async () => {
  const pair = await startPair();
  pair.main.serve<{ a: number }>(
    "sum",
    async ({ a }, { response }) => void response.end(JSON.stringify({ b: a + 1 })),
  );
  expect(await pair.edge.ask("sum", { a: 1 })).toEqual({ b: 2 });
  await expect(pair.edge.ask("unknown", {})).rejects.toBeInstanceOf(FailedCall);
});
