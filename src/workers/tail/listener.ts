import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { Logger } from "pino";
import { bounded } from "./bounded.ts";
import type { Tails, Watcher } from "./tails.ts";
import { SendOnlyWebSocket } from "./web-socket.ts";
import { endWith } from "../../platform/util/raw-http.ts";
import { unawaited } from "../../platform/util/uncaught.ts";

/** The WebSocket subprotocol of the clients. */
const protocol = "trace-v1";
const pathPattern = /^\/client\/v4\/tails\/([0-9a-f]{32})\/([\w-]{32})$/;
/** Events are dropped when a watcher does not read: its buffer must not take memory from requests. */
const waitingBytesMax = 1024 * 1024;

export const tailPath = (id: string, secret: string): string => `/client/v4/tails/${id}/${secret}`;

/** Accepts watchers. The secret in the URL is their authorization. */
export const tailUpgrade =
  (tails: Tails, logger: Logger) =>
  (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    unawaited(
      accept(tails, request, socket, head).catch((error: unknown) => {
        logger.warn({ err: error }, "a WebSocket for live logs could not be opened");
        socket.destroy();
      }),
    );
  };

async function accept(tails: Tails, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  socket.on("error", () => socket.destroy());
  const match = pathPattern.exec((request.url ?? "").split("?", 1)[0]!);
  const tail = match === null ? undefined : await tails.find(match[1]!, match[2]!);
  const asked = (request.headers["sec-websocket-protocol"] ?? "").split(",").map((each) => each.trim());
  if (request.headers.upgrade?.toLowerCase() !== "websocket" || tail === undefined)
    refuse(socket, "404 Not Found");
  else if (!asked.includes(protocol)) refuse(socket, "400 Bad Request");
  else {
    const open = (): Watcher => {
      const connection = new SendOnlyWebSocket(request, socket, head, protocol, () => {
        if (tail.watcher === watcher) tails.end(tail).catch(() => {});
      });
      const watcher = watcherOf(connection);
      return watcher;
    };
    if (!(await tails.connect(tail, open))) refuse(socket, "404 Not Found");
  }
}

function refuse(socket: Duplex, status: string): void {
  endWith(socket, `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}

const watcherOf = (connection: SendOnlyWebSocket): Watcher => ({
  send: bounded(
    () => connection.waitingBytes <= waitingBytesMax,
    (text) => connection.send(text),
  ),
  end: () => connection.close(1000, "the tail has ended"),
});
