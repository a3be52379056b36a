import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { loopback, raw, startEdge, startOrigin, type TestEdge, type TestOrigin } from "./harness.ts";

let edge: TestEdge;
let origin: TestOrigin;
let seen: { url: string; body: string }[] = [];
beforeAll(async () => {
  origin = await startOrigin((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      seen.push({ url: request.url!, body });
      response.end("ok");
    });
  });
  edge = await startEdge({ "a.example": loopback }, origin.port, { settings: { bodyBytesMax: 1000 } });
});
beforeEach(() => (seen = []));
afterAll(async () => {
  await edge.close();
  origin.close();
});

const head = "Host: a.example\r\nConnection: close\r\n";
const long = "x".repeat(40_000);

/**
 * Ambiguous requests, which two servers could parse differently, are refused before they reach the origin.
 */
describe.each([
  [
    "Content-Length beside Transfer-Encoding",
    `POST / HTTP/1.1\r\n${head}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\n\r\n`,
  ],
  [
    "Transfer-Encoding beside Content-Length",
    `POST / HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nX`,
  ],
  [
    "two different Content-Lengths",
    `POST / HTTP/1.1\r\n${head}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`,
  ],
  ["two equal Content-Lengths", `POST / HTTP/1.1\r\n${head}Content-Length: 1\r\nContent-Length: 1\r\n\r\na`],
  ["a list of Content-Lengths", `POST / HTTP/1.1\r\n${head}Content-Length: 1, 1\r\n\r\na`],
  ["a signed Content-Length", `POST / HTTP/1.1\r\n${head}Content-Length: +1\r\n\r\na`],
  ["a hexadecimal Content-Length", `POST / HTTP/1.1\r\n${head}Content-Length: 0x1\r\n\r\na`],
  ["an unknown Transfer-Encoding", `POST / HTTP/1.1\r\n${head}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`],
  [
    "chunked that is not last",
    `POST / HTTP/1.1\r\n${head}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
  ],
  [
    "a space before the colon of Transfer-Encoding",
    `POST / HTTP/1.1\r\n${head}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`,
  ],
  ["a folded header", `GET / HTTP/1.1\r\n${head}X-A: b\r\n c\r\n\r\n`],
  ["a bare line feed in the head", `GET / HTTP/1.1\nHost: a.example\n\n`],
  ["a bare carriage return in a value", `GET / HTTP/1.1\r\n${head}X-A: b\rGET /evil HTTP/1.1\r\n\r\n`],
  ["a NUL in a value", `GET / HTTP/1.1\r\n${head}X-A: b\u0000c\r\n\r\n`],
  ["a control character in a name", `GET / HTTP/1.1\r\n${head}X\u0001A: b\r\n\r\n`],
  ["an empty header name", `GET / HTTP/1.1\r\n${head}: b\r\n\r\n`],
  ["a header without a colon", `GET / HTTP/1.1\r\n${head}nonsense\r\n\r\n`],
  ["a bad chunk size", `POST / HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n0\r\n\r\n`],
  [
    "a negative chunk size",
    `POST / HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n-1\r\nab\r\n0\r\n\r\n`,
  ],
  ["two Host headers", `GET / HTTP/1.1\r\nHost: a.example\r\n${head}\r\n`],
  ["two different Host headers", `GET / HTTP/1.1\r\nHost: b.example\r\n${head}\r\n`],
  ["no Host header", "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"],
  ["a Host with a path", "GET / HTTP/1.1\r\nHost: a.example/x\r\nConnection: close\r\n\r\n"],
  ["a Host with user information", "GET / HTTP/1.1\r\nHost: u@a.example\r\nConnection: close\r\n\r\n"],
  ["a Host with a comma", "GET / HTTP/1.1\r\nHost: a.example, b\r\nConnection: close\r\n\r\n"],
  ["an absolute form that contradicts Host", `GET http://b.example/ HTTP/1.1\r\n${head}\r\n`],
  ["an absolute form of another scheme", `GET ftp://a.example/ HTTP/1.1\r\n${head}\r\n`],
  ["a request line with an extra space", `GET / evil HTTP/1.1\r\n${head}\r\n`],
  ["an unknown version", `GET / HTTP/9.9\r\n${head}\r\n`],
  ["an unknown method", `EVIL / HTTP/1.1\r\n${head}\r\n`],
  ["a head that is too long", `GET / HTTP/1.1\r\n${head}X-A: ${long}\r\n\r\n`],
  ["too many header fields", `GET / HTTP/1.1\r\n${head}${"X: y\r\n".repeat(300)}\r\n`],
])("%s", (_what, bytes) => {
  it("is refused", async () => {
    const answer = await raw(edge.port, bytes);
    expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /);
    expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1);
    // A bad chunk may follow a valid head: the origin may see that request abort, but no other.
    expect(seen.filter(({ url }) => url !== "/")).toEqual([]);
    expect(seen).toEqual([]);
  });
});

it.each([
  ["an absolute form that agrees", `GET http://A.example/p?q HTTP/1.1\r\n${head}\r\n`, "/p?q", ""],
  [
    "a Host with a port and a final dot",
    "GET /p HTTP/1.1\r\nHost: A.Example.:8080\r\nConnection: close\r\n\r\n",
    "/p",
    "",
  ],
  [
    "a chunked body",
    `POST /p HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
    "/p",
    "abc",
  ],
  [
    "a body with Expect",
    `POST /p HTTP/1.1\r\n${head}Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc`,
    "/p",
    "abc",
  ],
])("%s is served", async (_what, bytes, url, body) => {
  const answer = await raw(edge.port, bytes);
  expect(answer).toContain("HTTP/1.1 200 OK");
  expect(seen).toEqual([{ url, body }]);
});

it.each([
  ["declared", `POST / HTTP/1.1\r\n${head}Content-Length: 1001\r\n\r\n${"x".repeat(1001)}`],
  [
    "chunked",
    `POST / HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n3e9\r\n${"x".repeat(1001)}\r\n0\r\n\r\n`,
  ],
])("a body over the limit, %s, is refused", async (_what, bytes) => {
  expect(await raw(edge.port, bytes)).toMatch(/^HTTP\/1\.1 413 /);
  expect(seen).toEqual([]);
});
