import { connect as connectHttp2, type ClientHttp2Session } from "node:http2";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import type { Random } from "../name-server/random.ts";
import { createZone } from "../snippets/example-platform.ts";
import type { Target } from "./target.ts";

/*
 * Valid and malformed answers of origins and scripts, requested over each version of HTTP. Every request must
 * get an answer with a status.
 */

/** A response of an origin. Scripts create the same with `new Response`, as far as possible. */
export interface HostileAnswer {
  version: string;
  status: number;
  reason: string;
  headers: [name: string, value: string][];
  framing: "length" | "chunked" | "close" | "both" | "short" | "none";
  body: string;
  trailers: [name: string, value: string][];
  /** Bytes before the head: valid and invalid interim responses. */
  before: string;
}

const connectionHeaders = [
  ...["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "te", "trailer"],
  ...["http2-settings", "proxy-authenticate", "expect", "host", "content-length"],
];
/** Headers that HTTP/2 implementations allow only once, and a few others with a meaning. */
const singleHeaders = [
  ...["content-type", "etag", "location", "date", "expires", "last-modified", "age", "retry-after", "server"],
  ...["access-control-allow-credentials", "access-control-max-age", "content-encoding", "content-range"],
  ...["content-language", "content-disposition", "dnt", "referer", "from", "user-agent", "authorization"],
];
const otherHeaders = [
  ...["set-cookie", "vary", "x-any", "X-UPPER", "cf-ray", "x-selvedge-error", "x-selvedge-outcome", "link"],
  ...["__proto__", "constructor", "toString", "a!#$%&'*+-.^_`|~9", "alt-svc", "cache-control", "warning"],
];
const names = [...connectionHeaders, ...singleHeaders, ...otherHeaders];
const values = [
  ...[
    "",
    " ",
    "a",
    "close",
    "keep-alive, x-any",
    "trailers",
    "gzip",
    "chunked",
    "identity",
    "websocket",
    "h2c",
  ],
  ...[
    "0",
    "-1",
    "5",
    "99999999999999999999",
    "text/html",
    "text/html; charset=utf-8",
    "\t tab \t",
    "é ÿ",
    "\x80\xff",
  ],
  ...["%", "%E0%A4%A", "a, b", '"quoted"', "=?utf-8?q?x?=", "Sun, 22 Nov 2026 04:00:00 GMT", "\x01", "\x7f"],
  ...["x".repeat(9000), "bytes 0-4/5", "*/*", "{}", "\u00e2\u0082\u00ac"],
];
const statuses = [
  ...[
    200, 200, 200, 201, 204, 205, 206, 299, 301, 304, 399, 401, 404, 407, 416, 421, 426, 451, 499, 500, 503,
    520,
  ],
  ...[599, 600, 999, 0, 100, 101, 102, 103, 199, 1000],
];

const plainAnswer: HostileAnswer = {
  version: "1.1",
  status: 200,
  reason: "OK",
  headers: [],
  framing: "chunked",
  body: "body",
  trailers: [],
  before: "",
};

/** One unusual property at a time: each header and trailer, once and twice, and each status. */
export const systematicAnswers: readonly HostileAnswer[] = [
  ...names.flatMap((name) =>
    ([["a"], ["trailers"], ["a", "b"]] as const).flatMap((given) => {
      const pairs = given.map((value): [string, string] => [name, value]);
      return [
        { ...plainAnswer, headers: pairs },
        { ...plainAnswer, headers: pairs, framing: "length" as const },
        { ...plainAnswer, trailers: pairs },
      ];
    }),
  ),
  ...values.flatMap((value) => [
    { ...plainAnswer, headers: [["x-any", value]] as [string, string][] },
    { ...plainAnswer, trailers: [["x-any", value]] as [string, string][] },
  ]),
  ...[...new Set(statuses)].flatMap((status) => [
    { ...plainAnswer, status },
    { ...plainAnswer, status, body: "", framing: "length" as const },
    { ...plainAnswer, status, framing: "short" as const },
  ]),
];

export function randomAnswer(random: Random): HostileAnswer {
  const pairs = (max: number): [string, string][] => {
    const list: [string, string][] = Array.from({ length: random.below(max) }, () => [
      random.pick(names),
      random.pick(values),
    ]);
    if (list.length > 0 && random.chance(40)) list.push([random.pick(list)[0], random.pick(values)]);
    return list;
  };
  return {
    version: random.chance(90) ? "1.1" : random.pick(["1.0", "2.0", "0.9", "1.9"]),
    status: random.pick(statuses),
    reason: random.pick(["OK", "", "é", "\t", "a\x01b", "x".repeat(500)]),
    headers: pairs(6),
    framing: random.pick([
      "length",
      "length",
      "chunked",
      "chunked",
      "chunked",
      "close",
      "both",
      "short",
      "none",
    ]),
    body: random.pick(["", "body", "b".repeat(70_000)]),
    trailers: random.chance(60) ? pairs(5) : [],
    before: random.chance(85)
      ? ""
      : random.pick([
          "HTTP/1.1 100 Continue\r\n\r\n",
          "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n",
          "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
          "\r\n\r\n",
          "garbage\r\n\r\n",
          "HTTP/1.1 100 Continue\r\n\r\n".repeat(50),
        ]),
  };
}

function bytesOf(answer: HostileAnswer): Buffer {
  const { framing, body } = answer;
  const lines = (list: readonly [string, string][]): string =>
    list.map(([k, v]) => `${k}: ${v}\r\n`).join("");
  const length = framing === "short" ? body.length + 10 : body.length;
  const framed = {
    length: `content-length: ${length}\r\n`,
    short: `content-length: ${length}\r\n`,
    chunked: "transfer-encoding: chunked\r\n",
    both: `content-length: ${length}\r\ntransfer-encoding: chunked\r\n`,
    close: "connection: close\r\n",
    none: "",
  }[framing];
  const head = `${answer.before}HTTP/${answer.version} ${answer.status} ${answer.reason}\r\n${lines(answer.headers)}${framed}\r\n`;
  const isChunked = framing === "chunked" || framing === "both";
  const chunk = body === "" ? "" : `${body.length.toString(16)}\r\n${body}\r\n`;
  const text = isChunked ? `${chunk}0\r\n${lines(answer.trailers)}\r\n` : body;
  return Buffer.from(head + text, "latin1");
}

export const sources = [
  "origin",
  "script fetches",
  "script makes",
  "service binding",
  "snippet",
  "upgrade",
] as const;
export const visitors = ["HTTP/1.1", "HTTP/1.0", "HTTP/1.1 over TLS", "HTTP/2"] as const;
export type Source = (typeof sources)[number];
export type VisitorVersion = (typeof visitors)[number];

/** The result for a visitor: a status, or the reason why there was none. */
export type Seen = number | string;

const answerMs = 20_000;

/** The scripts and zones that return the responses, and their visitors. */
export class Answers {
  readonly #target: Target;
  readonly #answers = new Map<string, HostileAnswer>();
  readonly #sockets = new Set<Socket>();
  #last = 0;
  #session: ClientHttp2Session | undefined;
  #close: () => void = () => {};

  private constructor(target: Target) {
    this.#target = target;
  }

  static async start(target: Target): Promise<Answers> {
    const answers = new Answers(target);
    const port = await answers.#listen();
    const outside = `http://127.0.0.1:${port}`;
    await target.createZone("answers.example", port);
    await createZone(
      target.started.ready.api,
      "snippet.example",
      port,
      [
        {
          name: "mirror",
          code: `export default { async fetch(request) {
            const response = await fetch(request);
            if (new URL(request.url).searchParams.has("same")) return response;
            const headers = new Headers(response.headers);
            headers.append("x-mirrored", "yes");
            return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
          } };`,
        },
      ],
      target.token,
    );
    await target.deploy(
      "fetches",
      `export default { fetch: (request) => fetch("${outside}" + new URL(request.url).pathname) };`,
    );
    await target.deploy(
      "makes",
      `export default { async fetch(request) {
        const spec = await (await fetch("${outside}/spec" + new URL(request.url).pathname)).json();
        const headers = new Headers();
        for (const [name, value] of spec.headers) try { headers.append(name, value); } catch {}
        const body = [101, 204, 205, 304].includes(spec.status) ? null : spec.body;
        return new Response(body, { status: spec.status, statusText: spec.reason, headers });
      } };`,
    );
    await target.deploy("binds", {
      code: `export default { fetch: (request, env) => env.MAKES.fetch(request) };`,
      bindings: [{ type: "service", name: "MAKES", service: "makes" }],
    });
    return answers;
  }

  /** Requests the response as a visitor. Returns a status, or the reason why there was none. */
  async visit(answer: HostileAnswer, source: Source, visitor: VisitorVersion): Promise<Seen> {
    const id = String(++this.#last);
    this.#answers.set(id, answer);
    const host = this.#hostOf(source);
    const path = `/${id}${source === "snippet" && this.#last % 2 === 0 ? "?same" : ""}`;
    try {
      if (source === "upgrade") return await this.#raw(visitor.includes("TLS"), upgradeOf(host, path));
      if (visitor === "HTTP/2") return await this.#http2(host, path);
      const version = visitor === "HTTP/1.0" ? "1.0" : "1.1";
      const head = `GET ${path} HTTP/${version}\r\nhost: ${host}\r\nconnection: close\r\nte: trailers\r\n\r\n`;
      return await this.#raw(visitor.includes("TLS"), head);
    } finally {
      this.#answers.delete(id);
    }
  }

  close(): void {
    this.#session?.destroy();
    this.#close();
  }

  #hostOf(source: Source): string {
    if (source === "snippet") return "snippet.example";
    if (source === "origin" || source === "upgrade") return "answers.example";
    return this.#target.hostOf(
      { "script fetches": "fetches", "script makes": "makes", "service binding": "binds" }[source],
    );
  }

  async #listen(): Promise<number> {
    const server = createServer((socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => socket.destroy()).on("close", () => this.#sockets.delete(socket));
      let text = "";
      socket.on("data", (chunk: Buffer) => {
        text += chunk.toString("latin1");
        for (let end = text.indexOf("\r\n\r\n"); end >= 0; end = text.indexOf("\r\n\r\n")) {
          this.#answer(socket, text.slice(0, end));
          text = text.slice(end + 4);
        }
      });
    });
    this.#close = () => {
      server.close();
      for (const socket of this.#sockets) socket.destroy();
    };
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return (server.address() as AddressInfo).port;
  }

  #answer(socket: Socket, head: string): void {
    const path = /^\S+ (\S*)/.exec(head)?.[1] ?? "";
    const [, isSpec, id = ""] = /^(\/spec)?\/(\d+)/.exec(path) ?? [];
    const answer = this.#answers.get(id);
    if (answer === undefined) socket.destroy();
    else if (isSpec === undefined) {
      socket.write(bytesOf(answer));
      // After an interim response, the edge correctly waits for the final one.
      if (answer.status < 200 || !["length", "chunked"].includes(answer.framing)) socket.end();
    } else {
      const body = Buffer.from(JSON.stringify(answer));
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`);
      socket.write(body);
    }
  }

  #raw(isTls: boolean, request: string): Promise<Seen> {
    return new Promise((resolve) => {
      const { edge, edge_tls: tls } = this.#target.started.ready;
      const port = Number(new URL(isTls ? tls! : edge).port);
      const host = /^host: (\S+)/m.exec(request)![1]!;
      const socket: Socket = isTls
        ? connectTls({ host: "127.0.0.1", port, servername: host, rejectUnauthorized: false })
        : connect(port, "127.0.0.1");
      let text = "";
      const done = (): void => {
        clearTimeout(timer);
        socket.destroy();
        const status = /^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1];
        resolve(status === undefined ? `no status: ${JSON.stringify(text.slice(0, 80))}` : Number(status));
      };
      const timer = setTimeout(() => {
        if (text.startsWith("HTTP/1.1 101")) done(); // tunnels stay open
        else {
          socket.destroy();
          resolve("no end of the answer");
        }
      }, answerMs);
      socket.on("data", (chunk) => {
        if (text.length < 1000) text += chunk.toString("latin1");
        if (text.startsWith("HTTP/1.1 101")) done();
      });
      socket.on("close", done).on("error", () => {});
      socket.write(request, "latin1");
    });
  }

  async #http2(host: string, path: string): Promise<Seen> {
    const session = await this.#connectHttp2();
    return new Promise((resolve) => {
      const stream = session.request({ ":path": path, ":authority": host, te: "trailers" });
      let seen: Seen = "no status";
      const timer = setTimeout(() => {
        stream.close();
        resolve("no end of the answer");
      }, answerMs);
      stream.on("response", (headers) => (seen = headers[":status"]!));
      stream.on("error", (error) => (seen = typeof seen === "number" ? seen : `no status: ${error.message}`));
      stream.on("close", () => {
        clearTimeout(timer);
        resolve(seen);
      });
      stream.resume().end();
    });
  }

  async #connectHttp2(): Promise<ClientHttp2Session> {
    if (this.#session !== undefined && !this.#session.closed && !this.#session.destroyed)
      return this.#session;
    const port = Number(new URL(this.#target.started.ready.edge_tls!).port);
    const socket = await new Promise<TLSSocket>((resolve, reject) => {
      const options = { servername: "answers.example", ca: this.#target.authority, ALPNProtocols: ["h2"] };
      const made = connectTls({ host: "127.0.0.1", port, ...options }, () => resolve(made));
      made.on("error", reject);
    });
    const session = connectHttp2("https://answers.example", { createConnection: () => socket });
    session.on("error", () => {});
    return (this.#session = session);
  }
}

const upgradeOf = (host: string, path: string): string =>
  `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`;
