import { request as httpRequest, type IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { originError, visitorErrors } from "./errors.ts";
import { visitorHeaders } from "./headers.ts";
import type { OriginRequest } from "./proxy.ts";
import type { EdgeSettings } from "./settings.ts";

/**
 * Asks the origin for an upgrade (a WebSocket, mostly). On 101 the two connections are joined; any other answer is
 * passed on, and the visitor's connection ends with it, so that nothing the visitor sends reaches the origin unseen.
 */
export function tunnel(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  origin: OriginRequest,
  settings: EdgeSettings,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const upstream = httpRequest({
      host: origin.addresses[0],
      port: origin.port,
      method: origin.method,
      path: origin.path,
      headers: [...origin.headers, "connection", "upgrade", "upgrade", request.headers.upgrade ?? ""],
      agent: false,
      timeout: settings.originConnectTimeoutMs,
    });
    const leave = (): void => void upstream.destroy();
    socket.on("close", leave);
    upstream.on("timeout", () => upstream.destroy(visitorErrors.originConnectTimeout()));
    upstream.on("error", (error) => {
      socket.off("close", leave);
      reject(originError(error));
    });
    upstream.on("response", (answer) => {
      const headers = visitorHeaders(answer.rawHeaders, origin.ray);
      socket.write(
        head1(answer.statusCode ?? 502, answer.statusMessage ?? "", [...headers, "connection", "close"]),
      );
      answer.pipe(socket);
      answer.on("close", () => resolve());
    });
    upstream.on("upgrade", (answer: IncomingMessage, originSocket: Duplex, originHead: Buffer) => {
      socket.off("close", leave);
      const headers = [
        ...visitorHeaders(answer.rawHeaders, origin.ray),
        "connection",
        "upgrade",
        "upgrade",
        answer.headers.upgrade ?? "",
      ];
      socket.write(head1(101, answer.statusMessage ?? "Switching Protocols", headers));
      if (originHead.length > 0) socket.write(originHead);
      if (head.length > 0) originSocket.write(head);
      for (const side of [socket, originSocket] as (Duplex & {
        setTimeout?: (ms: number, done: () => void) => void;
      })[]) {
        side.setTimeout?.(settings.idleTimeoutMs, () => side.destroy());
      }
      const end = (): void => {
        socket.destroy();
        originSocket.destroy();
        resolve();
      };
      socket.on("error", end).on("close", end);
      originSocket.on("error", end).on("close", end);
      socket.pipe(originSocket);
      originSocket.pipe(socket);
    });
    upstream.end();
  });
}

function head1(status: number, statusText: string, headers: readonly string[]): string {
  let text = `HTTP/1.1 ${status} ${statusText}\r\n`;
  for (let i = 0; i < headers.length; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return `${text}\r\n`;
}
