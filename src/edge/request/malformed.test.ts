import { beforeEach, describe, expect, it } from "vitest";
import { exchangeBytes, startEdge, startOrigin, type TestEdge } from "./test-edge.ts";

let edge: TestEdge;
let atOrigin: string[];
beforeEach(async () => {
  atOrigin = [];
  const origin = await startOrigin((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString("latin1")));
    request.on("end", () => {
      atOrigin.push(`${request.method} ${request.url} ${body}`);
      response.end("served");
    });
  });
  edge = await startEdge({ originPort: origin.port });
});

const host = "Host: www.example.com\r\n";
const post = `POST /a HTTP/1.1\r\n${host}`;
const chunked = `${post}Transfer-Encoding: chunked\r\n`;
const hello = "5\r\nhello\r\n0\r\n\r\n";
/** The request that an attacker wants to smuggle to the origin or the edge. */
const smuggled = `GET /smuggled HTTP/1.1\r\n${host}\r\n`;

const refused: [what: string, bytes: string][] = [
  ["Content-Length and Transfer-Encoding", `${chunked}Content-Length: 5\r\n\r\n${hello}`],
  [
    "Transfer-Encoding and Content-Length, in that order",
    `${post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n${hello}`,
  ],
  ["two lengths that differ", `${post}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!`],
  ["two lengths that agree", `${post}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello`],
  ["a list of lengths", `${post}Content-Length: 5, 5\r\n\r\nhello`],
  ["a signed length", `${post}Content-Length: +5\r\n\r\nhello`],
  ["a negative length", `${post}Content-Length: -1\r\n\r\nhello`],
  ["a hexadecimal length", `${post}Content-Length: 0x5\r\n\r\nhello`],
  ["a length past every number", `${post}Content-Length: 18446744073709551621\r\n\r\nhello`],
  ["a length with a space in it", `${post}Content-Length: 1 0\r\n\r\nhello`],
  ["an empty length", `${post}Content-Length: \r\n\r\n`],
  ["chunked twice", `${chunked}Transfer-Encoding: chunked\r\n\r\n${hello}`],
  ["chunked, then something else", `${post}Transfer-Encoding: chunked, identity\r\n\r\n${hello}`],
  ["something else, then chunked", `${post}Transfer-Encoding: gzip, chunked\r\n\r\n${hello}`],
  ["an unknown coding", `${post}Transfer-Encoding: xchunked\r\n\r\n${hello}`],
  ["identity", `${post}Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello`],
  ["an empty coding", `${post}Transfer-Encoding: \r\n\r\n${hello}`],
  ["a vertical tab before the coding", `${post}Transfer-Encoding:\x0bchunked\r\n\r\n${hello}`],
  ["a quoted coding", `${post}Transfer-Encoding: "chunked"\r\n\r\n${hello}`],
  ["a space before the colon", `${post}Transfer-Encoding : chunked\r\n\r\n${hello}`],
  ["a tab before the colon", `${post}Content-Length\t: 5\r\n\r\nhello`],
  ["a folded line", `${post}X-A: b\r\n Content-Length: 5\r\n\r\nhello`],
  ["a folded coding", `${post}Transfer-Encoding:\r\n chunked\r\n\r\n${hello}`],
  ["a space before the first header", `GET /a HTTP/1.1\r\n ${host}\r\n`],
  ["a header without a name", `GET /a HTTP/1.1\r\n${host}: value\r\n\r\n`],
  ["a header without a colon", `GET /a HTTP/1.1\r\n${host}X-A\r\n\r\n`],
  ["a control character in a name", `GET /a HTTP/1.1\r\n${host}X\x01A: b\r\n\r\n`],
  ["a NUL in a value", `GET /a HTTP/1.1\r\n${host}X-A: a\0b\r\n\r\n`],
  ["a bare CR in a value", `GET /a HTTP/1.1\r\n${host}X-A: a\rX-B: b\r\n\r\n`],
  ["bare LF line ends", `GET /a HTTP/1.1\n${host.replace("\r", "")}\n`],
  ["one bare LF", `GET /a HTTP/1.1\r\nHost: www.example.com\nX-A: b\r\n\r\n`],
  ["a bare LF after a chunk's size", `${chunked}\r\n5\nhello\r\n0\r\n\r\n`],
  ["a chunk longer than its size", `${chunked}\r\n3\r\nhello\r\n0\r\n\r\n`],
  ["a chunk size past every number", `${chunked}\r\n10000000000000005\r\nhello\r\n0\r\n\r\n`],
  ["a chunk size with a prefix", `${chunked}\r\n0x5\r\nhello\r\n0\r\n\r\n`],
  ["a negative chunk size", `${chunked}\r\n-5\r\nhello\r\n0\r\n\r\n`],
  ["a chunk size with a space before it", `${chunked}\r\n 5\r\nhello\r\n0\r\n\r\n`],
  ["an empty chunk size", `${chunked}\r\n\r\nhello\r\n0\r\n\r\n`],
  ["a length in the trailers", `${chunked}\r\n5\r\nhello\r\n0\r\nContent-Length: 4\r\n\r\n`],
  ["HTTP/1.0 with Transfer-Encoding", `${chunked.replace("1.1", "1.0")}\r\n${hello}`],
  ["HTTP/0.9", `GET /a HTTP/0.9\r\n${host}\r\n`],
  ["HTTP/2.0 as text", `GET /a HTTP/2.0\r\n${host}\r\n`],
  ["the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ["an unknown version", `GET /a HTTP/1.9\r\n${host}\r\n`],
  ["no version", `GET /a\r\n${host}\r\n`],
  ["an unknown method", `FROB /a HTTP/1.1\r\n${host}\r\n`],
  ["a method in lower case", `get /a HTTP/1.1\r\n${host}\r\n`],
  ["a space in the path", `GET /a b HTTP/1.1\r\n${host}\r\n`],
  ["a tab in the path", `GET /a\tb HTTP/1.1\r\n${host}\r\n`],
  ["a byte outside ASCII in the path", `GET /\xe9 HTTP/1.1\r\n${host}\r\n`],
  ["a fragment", `GET /a#b HTTP/1.1\r\n${host}\r\n`],
  ["a path without a slash", `GET a HTTP/1.1\r\n${host}\r\n`],
  ["an asterisk", `OPTIONS * HTTP/1.1\r\n${host}\r\n`],
  ["another scheme", `GET ftp://www.example.com/ HTTP/1.1\r\n${host}\r\n`],
  ["a user in the request line", `GET http://me@www.example.com/ HTTP/1.1\r\n${host}\r\n`],
  ["a host in the request line that differs", `GET http://other.example.com/ HTTP/1.1\r\n${host}\r\n`],
  ["no Host", "GET /a HTTP/1.1\r\n\r\n"],
  ["an empty Host", "GET /a HTTP/1.1\r\nHost: \r\n\r\n"],
  ["two Hosts", `GET /a HTTP/1.1\r\n${host}Host: other.example.com\r\n\r\n`],
  ["the same Host twice", `GET /a HTTP/1.1\r\n${host}${host}\r\n`],
  ["a list of Hosts", "GET /a HTTP/1.1\r\nHost: www.example.com, other.example.com\r\n\r\n"],
  ["a Host with a path", "GET /a HTTP/1.1\r\nHost: www.example.com/x\r\n\r\n"],
  ["a Host with a user", "GET /a HTTP/1.1\r\nHost: me@www.example.com\r\n\r\n"],
  ["a Host with an empty label", "GET /a HTTP/1.1\r\nHost: www..example.com\r\n\r\n"],
  ["a Host that begins with a dot", "GET /a HTTP/1.1\r\nHost: .example.com\r\n\r\n"],
  ["a Host with a port past the last", "GET /a HTTP/1.1\r\nHost: www.example.com:65536\r\n\r\n"],
  ["a Host with an invalid port", "GET /a HTTP/1.1\r\nHost: www.example.com:80a\r\n\r\n"],
  ["a Host outside ASCII", "GET /a HTTP/1.1\r\nHost: www.ex\xe4mple.com\r\n\r\n"],
  ["a Host too long", `GET /a HTTP/1.1\r\nHost: ${"a.".repeat(130)}example.com\r\n\r\n`],
  ["TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"],
];

describe("a request that two servers could parse differently", () => {
  it.each(refused)("%s is refused, and nothing after it is read", async (_what, bytes) => {
    // Also without a following request: some end the connection, and then the parser refuses the following
    // bytes.
    for (const after of ["", smuggled]) {
      const answer = await exchangeBytes(edge.port, bytes + after);
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
      expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1);
    }
    expect(atOrigin).toEqual([]);
  });

  it("that cannot be parsed gets a page with a ray, or JSON when it seems to accept it", async () => {
    const html = await exchangeBytes(edge.port, `GET /a HTTP/1.1\r\n${host}X A: b\r\n\r\n`);
    expect(html).toMatch(/^HTTP\/1\.1 400 Bad request\r\ncontent-type: text\/html/);
    const [, ray = ""] = /\r\ncf-ray: ([0-9a-f]{16}-DEV)\r\n/.exec(html) ?? [];
    expect(html).toMatch(new RegExp(`error 400 .*ray ${ray}`));
    const json = await exchangeBytes(
      edge.port,
      `GET /a HTTP/1.1\r\n${host}Accept: application/json\r\nX A: b\r\n\r\n`,
    );
    expect(json).toMatch(/^HTTP\/1\.1 400 Bad request\r\ncontent-type: application\/json\r\n/);
    expect(JSON.parse(json.split("\r\n\r\n")[1]!)).toMatchObject({ error: { code: 400 } });
    expect(atOrigin).toEqual([]);
  });

  it("with too many header fields gets the page for that", async () => {
    const answer = await exchangeBytes(
      edge.port,
      `GET /a HTTP/1.1\r\n${host}X-A: ${"a".repeat(40_000)}\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 431 Request header fields too large\r\n/);
    expect(answer).toMatch(/error 431 .*ray [0-9a-f]{16}-DEV/);
  });

  it("CONNECT is closed without a response", async () => {
    expect(
      await exchangeBytes(edge.port, `CONNECT www.example.com:80 HTTP/1.1\r\n${host}\r\n${smuggled}`),
    ).toBe("");
    expect(atOrigin).toEqual([]);
  });

  it("h2c is not upgraded: it gets a response, and the connection ends", async () => {
    const answer = await exchangeBytes(
      edge.port,
      `GET /a HTTP/1.1\r\n${host}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n` +
        `GET /b HTTP/1.1\r\n${host}Connection: close\r\n\r\n`,
    );
    expect(answer.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(1);
    expect(answer).toMatch(/\r\nconnection: close\r\n/i);
    expect(atOrigin).toEqual(["GET /a "]);
  });

  it("a malformed second request gets its response after the whole response to the first", async () => {
    const answer = await exchangeBytes(edge.port, `GET /a HTTP/1.1\r\n${host}\r\nGET /b HTTP/9\r\n\r\n`);
    expect(answer).toMatch(
      /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n(?:6\r\n)?served(?:\r\n0\r\n\r\n)?HTTP\/1\.1 400 Bad request\r\n/,
    );
    expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(2);
    expect(atOrigin).toEqual(["GET /a "]);
  });
});

const close = "Connection: close\r\n";
const accepted: [what: string, bytes: string, seen: string][] = [
  ["an absolute request line", `GET http://www.example.com/a?b HTTP/1.1\r\n${host}${close}\r\n`, "GET /a?b "],
  [
    "an absolute request line without a path",
    `GET http://www.example.com?b HTTP/1.1\r\n${host}${close}\r\n`,
    "GET /?b ",
  ],
  [
    "a path that looks like a host",
    `GET //other.example.com/a HTTP/1.1\r\n${host}${close}\r\n`,
    "GET //other.example.com/a ",
  ],
  [
    "a host in capitals, with a dot and a port",
    `GET /a HTTP/1.1\r\nHost: WWW.Example.COM.:8080\r\n${close}\r\n`,
    "GET /a ",
  ],
  ["HTTP/1.0", `GET /a HTTP/1.0\r\n${host}\r\n`, "GET /a "],
  [
    "chunks with extensions and trailers",
    `${chunked}${close}\r\n5;a=b\r\nhello\r\n0\r\nX-A: b\r\n\r\n`,
    "POST /a hello",
  ],
  ["a coding in capitals", `${post}Transfer-Encoding: CHUNKED\r\n${close}\r\n${hello}`, "POST /a hello"],
  ["a GET with a body", `GET /a HTTP/1.1\r\n${host}${close}Content-Length: 5\r\n\r\nhello`, "GET /a hello"],
  [
    "a body that looks like a request",
    `${post}${close}Content-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
    `POST /a ${smuggled}`,
  ],
  [
    "a length that Connection names",
    `${post}Connection: close, content-length\r\nContent-Length: 5\r\n\r\nhello`,
    "POST /a hello",
  ],
];

it.each(accepted)("%s is served", async (_what, bytes, seen) => {
  expect(await exchangeBytes(edge.port, bytes)).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(atOrigin).toEqual([seen]);
});
