import type { Random } from "../../name-server/random.ts";
import { randomBytes, spoiled } from "./bytes.ts";

/** Names for requests to a listener, so that most of them pass its first checks. */
export interface Surroundings {
  hosts: readonly string[];
  /** Generates a method, a path and, if it fits, a body. */
  call(random: Random): { method: string; path: string; body?: string };
  headers: readonly string[];
}

const methods = [
  ...["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "QUERY"],
  ...["get", "G", "GE T", "PRI", "__proto__", "M-SEARCH", "BREW", "", "\0", "é", "X".repeat(300)],
];
/** Parts of paths that some code parses, decodes or looks up. */
export const oddParts = [
  ...["constructor", "__proto__", "toString", "hasOwnProperty", ".", "..", "%2e%2e", "%2f", "%5c", "\\"],
  ...["%", "%0", "%zz", "%00", "%E0%A4%A", "%ED%A0%80", "%c0%ae", "%F0%9F%98%80", "\xed\xa0\x80", "\xff"],
  ...["?", "??", "?a=%", "?__proto__[a]=1", "?a=1&a=2&a=3", "?page=1e999&per_page=-1", "#f", ";a=b", "*"],
  ...["null", "undefined", "NaN", "-1", "0", "9".repeat(40), "a".repeat(5000), "%41".repeat(300), "//", ""],
];
const wholeTargets = [
  ...["*", "/", "//", "http://", "http://[::1", "http://a:99999/", "https://user:pass@a/", "//a/b", "a", "?"],
  ...[
    "ftp://a/",
    "http://a",
    "http://a?b",
    "http://a#b",
    "http:///a",
    "javascript:alert(1)",
    "\0",
    "[::1]:1",
  ],
  ...[
    "/dashboard/constructor",
    "/dashboard/__proto__",
    "/dashboard/%",
    "/healthz?",
    "/readyz/",
    "/metrics?a",
  ],
];
const oddHeaders = [
  ...[
    "content-length: 0",
    "content-length: -1",
    "content-length: +5",
    "content-length: 5, 5",
    "content-length:",
  ],
  ...[
    "content-length: 99999999999999999999",
    "content-length: 0x10",
    "content-length: 1e3",
    "content-length: 5",
  ],
  ...["transfer-encoding: chunked", "transfer-encoding: gzip, chunked", "transfer-encoding: identity"],
  ...["transfer-encoding:\tchunked", "Transfer-Encoding : chunked", "transfer-encoding: chunked\r\n , x"],
  ...["expect: 100-continue", "expect: 200-ok", "connection: close", "connection: keep-alive, host, x"],
  ...[
    "upgrade: websocket\r\nconnection: upgrade",
    "upgrade: h2c\r\nhttp2-settings: AAMAAABk",
    "upgrade: \xff",
  ],
  ...[
    "sec-websocket-key: a",
    "sec-websocket-version: 13",
    "sec-websocket-protocol: trace-v1",
    "te: trailers",
  ],
  ...[
    "host: a",
    "host:",
    "host: a b",
    "host: [::1]:80",
    "host: \xff",
    `host: ${"a.".repeat(200)}`,
    "cookie: a=%",
  ],
  ...[
    "range: bytes=0-,-1,5-2",
    "range: bytes=-0",
    "range: x",
    "if-modified-since: yesterday",
    'if-none-match: "',
  ],
  ...[
    "accept: \xff/*;q=9",
    "accept: image/avif",
    `accept: ${"a/b,".repeat(500)}`,
    "accept-encoding: gzip;q=x",
  ],
  ...[
    "content-type: multipart/form-data",
    "content-type: multipart/form-data; boundary=",
    "content-type: \0",
  ],
  ...['content-type: multipart/form-data; boundary="a', "content-type: application/json; charset=utf-16"],
  ...["cf-connecting-ip: 1.2.3.4", "x-forwarded-for: ::, x", "x-forwarded-proto: gopher", "cf-ray: \x01"],
  ...[
    "x-selvedge-channel: %ED%A0%80",
    "x-selvedge-error: %",
    "selvedge-via: a",
    "cdn-loop: a,b",
    "via: 1.1 x",
  ],
  ...[
    "origin: null",
    "referer: http://[",
    "user-agent:",
    "date: 0",
    "x: \x01",
    "x: \x7f\x80",
    ": empty",
    "no colon",
  ],
  ...[
    "__proto__: x",
    "constructor: x",
    " folded: x",
    "x: a\r\n b",
    "x\0y: z",
    `x: ${"y".repeat(20_000)}`,
    "x: a\nb: c",
  ],
  ...[
    "authorization: Basic",
    "authorization: Basic %%",
    "authorization: Bearer",
    "x-auth-email: \xff\r\nx-auth-key: a",
  ],
];
const versions = [
  "HTTP/1.1",
  "HTTP/1.0",
  "HTTP/2.0",
  "HTTP/0.9",
  "HTTP/1.11",
  "http/1.1",
  "HTTP/9.9",
  "HTTP",
  "",
];
const ends = ["\r\n", "\n", "\r", "\r\n\r\n", ""];

/** A request. Four in ten are valid, and the others may have any defect. */
export function http1Message(random: Random, around: Surroundings): Buffer {
  const isPlain = random.chance(40);
  const odd = (ofHundred: number): boolean => !isPlain && random.chance(ofHundred);
  const call = around.call(random);
  const method = odd(12) ? random.pick(methods) : call.method;
  let target = call.path;
  if (odd(8)) target = random.pick(wholeTargets);
  else if (odd(12)) target = target.replace(/[^/?]+/g, (part) => (odd(25) ? random.pick(oddParts) : part));
  else if (odd(5)) target = `http://${random.pick(around.hosts)}${target}`;
  else if (odd(6)) target += random.pick(oddParts);
  const lines = [`${method} ${target} ${odd(4) ? random.pick(versions) : "HTTP/1.1"}`];
  if (!odd(4)) lines.push(`host: ${random.pick(around.hosts)}`);
  for (const header of around.headers) if (!odd(10)) lines.push(header);
  for (let count = odd(50) ? random.below(4) : 0; count > 0; count--) lines.push(random.pick(oddHeaders));
  if (odd(1)) for (let i = 0; i < 3000; i++) lines.push(`x${i}: y`);
  const body = Buffer.from(call.body ?? (random.chance(20) ? "b".repeat(random.below(2000)) : ""), "latin1");
  const framed = bodyOf(random, body, lines, odd);
  const end = odd(3) ? random.pick(ends) : "\r\n";
  const head = Buffer.from(lines.join(end) + end + end, "latin1");
  const message = Buffer.concat([head, framed]);
  return odd(12) ? spoiled(random, message) : message;
}

function bodyOf(random: Random, body: Buffer, lines: string[], odd: (ofHundred: number) => boolean): Buffer {
  if (body.length === 0 && random.chance(80)) return body;
  if (random.chance(70)) {
    lines.push(`content-length: ${body.length + (odd(15) ? random.pick([-3, 1, 1000, 1e10]) : 0)}`);
    return body;
  }
  lines.push("transfer-encoding: chunked");
  const size = odd(20)
    ? random.pick(["-1", "ffffffffffffffffff", "0x5", "", "5;x=y", "\0", `5;${"e".repeat(20_000)}`, "5 "])
    : body.length.toString(16);
  const trailers = odd(30) ? `${random.pick(oddHeaders)}\r\n` : "";
  const chunk = body.length === 0 ? "" : `${size}\r\n${body.toString("latin1")}\r\n`;
  const small = odd(5) ? "1\r\na\r\n".repeat(500) : "";
  return Buffer.from(`${small}${chunk}${odd(5) ? "" : `0\r\n${trailers}\r\n`}`, "latin1");
}

/** Bytes that are not HTTP: other protocols, and noise. */
export const noise = (random: Random): Buffer =>
  random.chance(50)
    ? randomBytes(random, random.below(300))
    : Buffer.from(
        random.pick([
          "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
          "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
          "SSH-2.0-x\r\n",
          "EHLO a\r\n",
          "\r\n".repeat(2000),
          "\0".repeat(2000),
          " ".repeat(40_000),
          "PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\nGET / HTTP/1.1\r\n\r\n",
        ]),
        "latin1",
      );
