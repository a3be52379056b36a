import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { pipeline } from "node:stream";
import { answerHead, join } from "../util/raw-http.ts";
import { tlsError, VisitorError, visitorErrors } from "./errors.ts";
import { visitorHeaders } from "./headers.ts";
import type { Origins } from "./origins.ts";
import type { OriginRequest } from "./proxy.ts";
import type { EdgeSettings } from "./settings.ts";

/** Only WebSockets are upgraded. Anything else (h2c above all) would go past the edge's own reading of requests. */
export function isWebSocket(request: IncomingMessage): boolean {
  const { upgrade, "content-length": length, "transfer-encoding": coding } = request.headers;
  const hasBody = length !== undefined || coding !== undefined;
  return upgrade?.toLowerCase() === "websocket" && request.method === "GET" && !hasBody;
}

/**
 * Asks the origin for an upgrade. On 101 the two connections are joined; any other answer is passed on, and the
 * visitor's connection ends with it, so that nothing the visitor sends reaches the origin unseen.
 */
export async function tunnel(
  socket: Socket,
  head: Buffer,
  origin: OriginRequest,
  origins: Origins,
  settings: EdgeSettings,
): Promise<void> {
  await origins.connect(origin.addresses, origin.port, (address) =>
    attempt(socket, head, origin, address, settings),
  );
}

function attempt(
  socket: Socket,
  head: Buffer,
  origin: OriginRequest,
  address: string,
  settings: EdgeSettings,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let isConnected = false;
    const { tls } = origin;
    const secure =
      tls === undefined
        ? {}
        : {
            servername: tls.servername,
            rejectUnauthorized: tls.isVerified,
            ...(settings.originCa === undefined ? {} : { ca: [...settings.originCa] }),
          };
    const upstream = (tls === undefined ? httpRequest : httpsRequest)({
      ...secure,
      host: address,
      port: origin.port,
      method: origin.method,
      path: origin.path,
      headers: [...origin.headers, "connection", "upgrade", "upgrade", "websocket"],
      agent: false,
      timeout: settings.originConnectTimeoutMs,
      maxHeaderSize: settings.headerBytesMax * 2,
    });
    upstream.once("socket", (originSocket) =>
      originSocket.once(tls === undefined ? "connect" : "secureConnect", () => {
        isConnected = true;
        originSocket.setTimeout(settings.originFirstByteTimeoutMs);
      }),
    );
    const leave = (): void => void upstream.destroy();
    socket.on("close", leave);
    upstream.on("timeout", () => {
      upstream.destroy(isConnected ? visitorErrors.originFirstByteTimeout() : connectTimeout());
    });
    upstream.on("error", (error) => {
      socket.off("close", leave);
      if (socket.destroyed) resolve();
      else
        reject(tls === undefined || isConnected || error instanceof VisitorError ? error : tlsError(error));
    });
    /** The origin has switched to something that nobody asked for: nothing of the visitor's is to reach it. */
    const refuse = (): void => {
      socket.off("close", leave);
      reject(
        visitorErrors.originFailed(new Error("the origin switched to a protocol that was not asked for")),
      );
    };
    upstream.on("response", (answer) => {
      if (answer.statusCode === 101) {
        refuse();
        upstream.destroy();
        return;
      }
      const { statusCode = 502, statusMessage = "" } = answer;
      const headers = visitorHeaders(answer.rawHeaders, origin.ray, statusCode);
      socket.write(answerHead(statusCode, statusMessage, [...headers, "connection", "close"]), "latin1");
      pipeline(answer, socket, () => {
        socket.destroySoon();
        resolve();
      });
    });
    upstream.on("upgrade", (answer: IncomingMessage, originSocket: Socket, originHead: Buffer) => {
      if (answer.headers.upgrade?.toLowerCase() !== "websocket") {
        refuse();
        originSocket.on("error", () => {}).destroy();
        return;
      }
      socket.off("close", leave);
      const headers = [
        ...visitorHeaders(answer.rawHeaders, origin.ray, 101),
        "connection",
        "upgrade",
        "upgrade",
        "websocket",
      ];
      socket.write(answerHead(101, answer.statusMessage ?? "", headers), "latin1");
      if (originHead.length > 0) socket.write(originHead);
      if (head.length > 0) originSocket.write(head);
      join(socket, originSocket, settings.idleTimeoutMs);
      join(originSocket, socket, settings.idleTimeoutMs);
      socket.on("close", () => resolve());
    });
    upstream.end();
  });
}

const connectTimeout = (): Error =>
  Object.assign(new Error("connect timed out"), { code: "ETIMEDOUT", syscall: "connect" });
