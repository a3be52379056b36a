import { createServer, ServerResponse, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { getRequestListener } from "@hono/node-server";
import type { Env, Hono } from "hono";
import type { AccessLog } from "../../../platform/access-log/access-log.ts";
import { CountedServerResponse } from "../../../platform/access-log/counted-response.ts";
import type { Health } from "../../../platform/observability/health.ts";
import { answerHealth } from "../../../platform/observability/health-listener.ts";
import { whileAnswering } from "../../../platform/observability/last-net.ts";
import { observeResponse, type Observe } from "../../../platform/observability/observation.ts";
import { continueWhenRead } from "../../../platform/listen/continue.ts";
import { closeListener, gentleMs, listenAt, type ListenAt } from "../../../platform/listen/listen.ts";
import type { ApiHooks } from "./hooks.ts";
import { answerClientErrors } from "./client-error.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";

/** Answers a request and returns true, or returns false and leaves it to the next handler. */
export type Pages = (request: IncomingMessage, response: ServerResponse) => boolean;

interface ApiServerOptions {
  observe?: Observe | undefined;
  pages?: Pages | undefined;
  accessLog?: AccessLog | undefined;
  hooks?: ApiHooks | undefined;
}

/** The HTTP server of the management API, with `/healthz` and `/readyz` for monitoring. */
export function createApiServer<E extends Env>(
  app: Hono<E>,
  health: Health,
  { observe, pages, accessLog, hooks }: ApiServerOptions = {},
): Server {
  const listener = getRequestListener(app.fetch);
  const server = createServer(
    {
      ServerResponse: accessLog === undefined ? ServerResponse : CountedServerResponse,
      requestTimeout: 30 * 60_000, // for an upload of 100 MB over a slow connection
      headersTimeout: 30_000,
      keepAliveTimeout: 65_000,
      maxHeaderSize: 32 * 1024,
    },
    (request, response) =>
      whileAnswering(
        response,
        () => failCall(response),
        () => {
          if (hooks?.request?.(request, response) === true) return;
          if (!answerHealth(request, response, health) && pages?.(request, response) !== true) {
            if (observe !== undefined) observeResponse(response, request, observe);
            if (accessLog !== undefined) logCall(accessLog, request, response);
            unawaited(listener(request, response));
          }
        },
      ),
  );
  continueWhenRead(server);
  answerClientErrors(server);
  return server;
}

function logCall(log: AccessLog, request: IncomingMessage, response: ServerResponse): void {
  const record = log.begin(request, response, undefined, performance.now());
  if (record !== undefined) response.on("close", () => log.end(record, performance.now()));
}

function failCall(response: ServerResponse): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const errors = [{ code: 1000, message: "An internal error occurred. See the server's log for details" }];
  response.writeHead(500, { "content-type": "application/json", connection: "close" });
  response.end(JSON.stringify({ success: false, errors, messages: [], result: null }));
}

/** Open connections by server. Node's own list omits connections that were upgraded to WebSockets. */
const connections = new WeakMap<Server, Set<Duplex>>();

/** The number of open connections of a server that `listen` opened, WebSockets included. */
export const openConnections = (server: Server): number => connections.get(server)?.size ?? 0;

/** Listens, and keeps a list of the open connections for `drain`. Returns the bound address. */
export async function listen(server: Server, at: ListenAt): Promise<AddressInfo> {
  const address = await listenAt(server, at);
  const open = new Set<Duplex>();
  connections.set(server, open);
  server.on("connection", (socket: Duplex) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  return address;
}

const ending = new WeakSet<Server>();

/** From now on, each response closes its connection, so that its client connects to another node. */
export function announceEnd(server: Server): void {
  if (ending.has(server)) return;
  ending.add(server);
  server.prependListener("request", (_request, response: ServerResponse) => {
    response.shouldKeepAlive = false;
  });
}

/**
 * Stops accepting connections, waits for calls in progress, and destroys the remaining connections after
 * `deadlineMs`. Connections without a request have a part of that time to send one: a client may have just
 * connected, and closing at once would reset it.
 */
export async function drain(server: Server, deadlineMs: number): Promise<void> {
  announceEnd(server);
  const closed = closeListener(server);
  // Repeated, because responses that had begun earlier left their connections open without `connection: close`.
  const idle = setInterval(() => server.closeIdleConnections(), gentleMs(deadlineMs));
  const timer = setTimeout(() => {
    for (const socket of connections.get(server) ?? []) socket.destroy();
  }, deadlineMs);
  await closed;
  clearInterval(idle);
  clearTimeout(timer);
  server.close(); // ends node:http's timer for slow requests
}
