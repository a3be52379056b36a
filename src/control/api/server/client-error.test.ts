import { createServer } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { answerClientErrors } from "./client-error.ts";

let finish = Promise.withResolvers<void>();
const server = createServer((request, response) => {
  void (async () => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    await finish.promise;
    response.end(`answer to ${request.url} ${body}`);
  })().catch(() => response.destroy());
});
answerClientErrors(server);
let port: number;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  port = (server.address() as AddressInfo).port;
});
afterAll(() => server.close());

/**
 * Writes parts one after another, each after the previous one has arrived, and reads until the server closes.
 */
async function exchange(parts: readonly string[]): Promise<string> {
  finish = Promise.withResolvers();
  let text = "";
  const socket = connect(port, "127.0.0.1");
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1"))).on("error", () => {});
  for (const part of parts) {
    await new Promise<void>((resolve) => socket.write(part, "latin1", () => resolve()));
    for (let i = 0; i < 20; i++) await turn();
  }
  finish.resolve();
  await closed;
  return text;
}

const nul = "\0".repeat(300);
it.each([
  ["an HTTP/1.0 request and NUL bytes", [`GET /a HTTP/1.0\r\nHost: x\r\n\r\n${nul}`]],
  ["NUL bytes that arrive later, twice", ["GET /a HTTP/1.0\r\nHost: x\r\n\r\n", nul, nul]],
  ["a request with a body", [`PUT /a HTTP/1.0\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody${nul}`]],
  ["an HTTP/1.1 request with keep-alive", [`GET /a HTTP/1.1\r\nHost: x\r\n\r\n${nul}`]],
  [
    "an HTTP/1.1 request with Connection: close",
    [`GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n${nul}`],
  ],
])("%s: the whole response is sent, and the connection closes", async (_, parts) => {
  const text = await exchange(parts);
  expect(text).toMatch(/^HTTP\/1\.1 200 OK/);
  expect(text.match(/answer to \/a/g)).toHaveLength(1);
});

it("answers pipelined requests that precede garbage", async () => {
  const text = await exchange([`GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n${nul}`]);
  expect(text.match(/answer to \/[ab]/g)).toEqual(["answer to /a", "answer to /b"]);
});

it.each([
  ["data that is not HTTP", "\x16\x03\x01 hello\r\n\r\n", 400],
  [
    "a request with a malformed chunked body",
    "PUT /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    400,
  ],
  ["headers over the limit", `GET /a HTTP/1.1\r\nHost: x\r\nX: ${"x".repeat(20_000)}\r\n\r\n`, 431],
])("%s is refused in the envelope", async (_, text, status) => {
  const [head = "", body = ""] = (await exchange([text])).split("\r\n\r\n");
  expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(JSON.parse(body)).toMatchObject({ success: false, result: null, errors: [{ code: 6003 }] });
});
