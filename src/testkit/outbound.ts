import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { inspect } from "node:util";
import { pipeline } from "node:stream/promises";
import type { ControlClient } from "./control-client.ts";

/** A request that left the platform, or would have left it without the test kit. */
export interface OutboundRequest {
  n: number;
  at: string;
  /** The sender: the edge for a visitor ("origin"), a script's `fetch`, or a WebSocket or TCP connection ("socket"). */
  from: "origin" | "script" | "socket";
  method: string;
  url: string;
  headers: Readonly<Record<string, string>>;
  answeredBy: "test" | "fault" | "network" | "refused";
  /** Null without an answer. */
  status: number | null;
  fault?: string;
}

/** The test's answer to a request of a script or of the edge. */
export type AnswerOutbound = (request: Request) => Response | Promise<Response>;

/** The requests that leave the platform, and the test's answers to them. A reset forgets both. */
export interface OutboundControl {
  /** Answers requests to a URL, in which * stands for any text. Of several answers that match, the newest is used. */
  on(url: string | RegExp, answer: AnswerOutbound): Promise<AsyncDisposable>;
  /** The latest 10,000 requests. */
  requests(): Promise<OutboundRequest[]>;
}

/** Outbound requests with the failures that `check` reports. */
interface Guarded extends OutboundControl {
  /** The failures since the last call: answers that threw, and with "refuse" the requests without an answer. */
  failures(): Promise<string[]>;
  forget(): void;
  close(): void;
}

const bodyless = new Set([101, 204, 205, 304]);

/** Answers outbound requests in this process, with an HTTP server that starts with the first answer. */
export function outboundOf(control: ControlClient, mode: string): Guarded {
  const secret = randomBytes(18).toString("base64url");
  const answers = new Map<string, AnswerOutbound>();
  const failed: string[] = [];
  let seen = 0;
  let server: Promise<{ server: Server; url: string }> | undefined;
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const answer = answers.get(headerOf(request, "answer"));
    if (headerOf(request, "secret") !== secret || answer === undefined) {
      response.writeHead(404).end();
      return;
    }
    try {
      await answerWith(answer, request, response);
    } catch (error) {
      failed.push(`The answer to ${request.method} ${headerOf(request, "url")} threw: ${inspect(error)}`);
      if (response.headersSent) response.destroy();
      else response.writeHead(502, { "content-type": "text/plain" }).end("The test's answer threw an error");
    }
  };
  const requests = async (): Promise<OutboundRequest[]> =>
    (await control.json<{ requests: OutboundRequest[] }>("GET", "/outbound/requests")).requests;
  return {
    async on(url, answer) {
      const { url: ask } = await (server ??= listen(serve));
      const fits = typeof url === "string" ? { url } : { pattern: { source: url.source, flags: url.flags } };
      const then = { ask, secret };
      const { id } = await control.json<{ id: string }>("POST", "/outbound/answers", { ...fits, then });
      answers.set(id, answer);
      return {
        async [Symbol.asyncDispose]() {
          if (answers.delete(id)) await control.json("DELETE", `/outbound/answers/${id}`);
        },
      };
    },
    requests,
    async failures() {
      const found = failed.splice(0);
      if (mode !== "refuse") return found;
      const made = await requests();
      const refused = made.filter(({ n, answeredBy }) => answeredBy === "refused" && n > seen);
      seen = made.at(-1)?.n ?? seen;
      return [
        ...refused.map(({ from, method, url }) => `Not answered: ${method} ${url} (${from})`),
        ...found,
      ];
    },
    forget() {
      answers.clear();
      seen = 0;
    },
    close() {
      server?.then(
        (each) => each.server.close(),
        () => {}, // the server never listened; `on` has reported it
      );
    },
  };
}

const headerOf = (request: IncomingMessage, name: string): string =>
  String(request.headers[`x-selvedge-${name}`] ?? "");

async function listen(
  serve: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
): Promise<{ server: Server; url: string }> {
  const server = createServer((request, response) => {
    serve(request, response).catch(() => {}); // the failure is recorded in `failed`
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(0, "127.0.0.1", resolve);
  });
  server.unref();
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function answerWith(
  answer: AnswerOutbound,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers))
    if (!name.startsWith("x-selvedge-") && value !== undefined)
      for (const each of [value].flat()) headers.append(name, each);
  const hasBody = incoming.method !== "GET" && incoming.method !== "HEAD";
  const {
    status,
    headers: sent,
    body,
  } = await answer(
    new Request(headerOf(incoming, "url"), {
      method: incoming.method!,
      headers,
      ...(hasBody ? { body: Readable.toWeb(incoming) as ReadableStream, duplex: "half" } : {}),
    }),
  );
  response.writeHead(status, [...sent].flat());
  if (body === null || bodyless.has(status) || incoming.method === "HEAD") response.end();
  else await pipeline(Readable.fromWeb(body as never), response);
}
