import { type ServerResponse } from "node:http";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { Pool } from "undici";
import { exchange } from "../../../src/sandbox/gateway/exchange.ts";
import { CollectedResponse } from "../../../src/workers/runtime/collected-response.ts";
import { type Random, oneOf, texts } from "./random.ts";
import { type Row, beside } from "./beside.ts";

/** Malformed answers to visitors' requests. */
export async function attackAnswers(folder: string, count: number, next: Random): Promise<Row> {
  const listening = async (path: string, answer: () => string, isHonest: boolean): Promise<Server> => {
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.on("data", () => {
        socket.write(Buffer.from(answer(), "latin1"));
        if (!isHonest && next(2) === 0) socket.end();
      });
    });
    await new Promise<void>((resolve) => server.listen(path, resolve));
    return server;
  };
  const wrong = (): string => {
    const line = oneOf(next, [
      "HTTP/1.1 200 OK",
      "HTTP/1.1 999 x",
      "HTTP/1.1 101 x",
      "HTTP/1.1 100 x",
      "HTTP/1.1 abc",
      "HTTP/9",
      "",
      oneOf(next, texts),
    ]);
    let headers = "";
    for (let i = next(5); i > 0; i--)
      headers += `${oneOf(next, ["x-selvedge-outcome", "x-selvedge-error", "content-length", "transfer-encoding", "a", "b c", "trailer"])}: ${oneOf(next, ["the-secret", "3", "-1", "chunked", ...texts])}\r\n`;
    return `${line}\r\n${headers}\r\n${oneOf(next, texts)}`;
  };
  const [bad, good] = [join(folder, "answers.sock"), join(folder, "good.sock")];
  const servers = [
    await listening(bad, wrong, false),
    await listening(good, () => "HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\ninnocent", true),
  ];
  const [hostile, honest] = [bad, good].map(
    (socketPath) =>
      new Pool("http://cell", {
        socketPath,
        connections: 20,
        pipelining: 1,
        headersTimeout: 0,
        bodyTimeout: 0,
      }),
  );
  const run = async (pool: Pool, timeoutMs: number): Promise<string> => {
    const response = new CollectedResponse(1e6);
    const request = { method: "GET", path: "/", headers: ["host", "site.example"], body: null };
    const timer = setTimeout(() => response.destroy(), timeoutMs);
    const visited = { controller: undefined, hasAnswer: false };
    try {
      const sink = {
        response: response as unknown as ServerResponse,
        headers: (raw: readonly string[]) => [...raw],
      };
      await exchange(pool, request, sink, "the-secret", () => {}, visited);
    } catch {
      // the connection was closed
    }
    clearTimeout(timer);
    return response.body.toString();
  };
  const row = await beside(
    "answers to visitors",
    count,
    async () => {
      for (let at = 0; at < count; at += 20)
        await Promise.all(Array.from({ length: Math.min(20, count - at) }, async () => run(hostile!, 50)));
    },
    async () => (await run(honest!, 60_000)) === "innocent",
  );
  await Promise.all([hostile!.destroy(), honest!.destroy()]);
  for (const server of servers) server.close();
  return row;
}
