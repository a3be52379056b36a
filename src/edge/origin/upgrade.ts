import { request as httpRequest, type ClientRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { pipeline } from "node:stream";
import { responseHead } from "../../platform/util/raw-http.ts";
import { peerTls } from "../origin-client/peer-tls.ts";
import { beginAttempt, traceHandshake } from "./attempt-trace.ts";
import { tlsError, VisitorError, visitorErrors } from "../http/errors.ts";
import { visitorHeaders } from "../http/headers.ts";
import { joinUpgraded } from "../http/join-upgraded.ts";
import type { Origins } from "./origins.ts";
import type { OriginRequest } from "./proxy.ts";
import type { EdgeSettings } from "../http/settings.ts";

/** Only WebSockets are upgraded. Other protocols, such as h2c, would bypass the edge's parsing. */
export function isWebSocket(request: IncomingMessage): boolean {
  const { upgrade, "content-length": length, "transfer-encoding": coding } = request.headers;
  const hasBody = length !== undefined || coding !== undefined;
  return upgrade?.toLowerCase() === "websocket" && request.method === "GET" && !hasBody;
}

/**
 * Requests an upgrade from the origin. On 101 the two connections are joined. Any other response is passed on
 * and ends the visitor's connection, so that no later bytes reach the origin unparsed.
 */
export async function joinOriginWebSocket(
  socket: Socket,
  head: Buffer,
  origin: OriginRequest,
  origins: Origins,
  settings: EdgeSettings,
): Promise<void> {
  await origins.connect(origin.addresses, origin.port, async (address) => {
    origins.underTest.hooks?.connects(webSocketUrl(origin), address);
    origin.record?.asksOrigin(address);
    return attempt(socket, head, origin, address, settings);
  });
}

const webSocketUrl = ({ headers, path, tls }: OriginRequest): string => {
  const host = headers[headers.findIndex((name) => name.toLowerCase() === "host") + 1]!;
  return `${tls === undefined ? "ws" : "wss"}://${host}${path}`;
};

/** Connects to an address and sends the request without its end. */
function begin(
  origin: OriginRequest,
  address: string,
  settings: EdgeSettings,
  failed: (error: Error) => void,
): ClientRequest {
  const { tls } = origin;
  const traced = beginAttempt(origin, { address });
  const headers = traced?.headers ?? origin.headers;
  const secure =
    tls === undefined
      ? {}
      : {
          ...peerTls,
          servername: tls.servername,
          rejectUnauthorized: tls.isVerified,
          ...(settings.originCa === undefined ? {} : { ca: [...settings.originCa] }),
        };
  const upstream = (tls === undefined ? httpRequest : httpsRequest)({
    ...secure,
    ...(origin.socketPath === undefined
      ? { host: address, port: origin.port }
      : { socketPath: origin.socketPath }),
    method: origin.method,
    path: origin.path,
    headers: [...headers, "connection", "upgrade", "upgrade", "websocket"],
    agent: false,
    timeout: settings.originConnectTimeoutMs,
    maxHeaderSize: settings.headerBytesMax * 2,
  });
  if (traced?.span !== undefined) traceHandshake(upstream, traced.span);
  let isConnected = false;
  upstream.once("socket", (socket) =>
    socket.once(tls === undefined ? "connect" : "secureConnect", () => {
      isConnected = true;
      socket.setTimeout(settings.originFirstByteTimeoutMs);
    }),
  );
  upstream.on("timeout", () => {
    upstream.destroy(isConnected ? visitorErrors.originFirstByteTimeout() : connectTimeout());
  });
  upstream.on("error", (error) => {
    failed(tls === undefined || isConnected || error instanceof VisitorError ? error : tlsError(error));
  });
  return upstream;
}

function passOn(answer: IncomingMessage, socket: Socket, ray: string, ended: () => void): void {
  const { statusCode = 0, statusMessage = "" } = answer;
  const headers = visitorHeaders(answer.rawHeaders, ray, statusCode);
  socket.write(responseHead(statusCode, statusMessage, [...headers, "connection", "close"]), "latin1");
  pipeline(answer, socket, () => {
    socket.destroySoon();
    ended();
  });
}

function attempt(
  socket: Socket,
  head: Buffer,
  origin: OriginRequest,
  address: string,
  settings: EdgeSettings,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const upstream = begin(origin, address, settings, (error) => {
      socket.off("close", leave);
      if (socket.destroyed) resolve();
      else reject(error);
    });
    const leave = (): void => {
      upstream.destroy();
    };
    socket.on("close", leave);
    /** The origin switched to an unrequested protocol, so no bytes of the visitor may reach it. */
    const refuse = (why = "the origin switched to an unrequested protocol"): void => {
      socket.off("close", leave);
      reject(visitorErrors.originFailed(new Error(why)));
    };
    upstream.on("response", (answer) => {
      const { statusCode = 0 } = answer;
      origin.record?.originAnswers(statusCode);
      if (statusCode < 200) {
        refuse(statusCode === 101 ? undefined : `the origin responded with status ${statusCode}`);
        upstream.destroy();
        return;
      }
      // The visitor has just disconnected, and "close" has not been emitted yet.
      if (socket.destroyed) {
        upstream.destroy();
        resolve();
        return;
      }
      socket.off("close", leave); // from here on the pipeline ends the origin's answer with the visitor
      passOn(answer, socket, origin.ray, resolve);
    });
    upstream.on("upgrade", (answer: IncomingMessage, originSocket: Socket, originHead: Buffer) => {
      if (answer.headers.upgrade?.toLowerCase() !== "websocket") {
        refuse();
        originSocket.on("error", () => {}).destroy();
        return;
      }
      socket.off("close", leave);
      origin.record?.originAnswers(101);
      const headers = visitorHeaders(answer.rawHeaders, origin.ray, 101);
      const upgraded = { socket: originSocket, head: originHead };
      joinUpgraded({ socket, head }, upgraded, answer.statusMessage ?? "", headers, settings.idleTimeoutMs);
      socket.on("close", () => resolve());
    });
    upstream.end();
  });
}

const connectTimeout = (): Error =>
  Object.assign(new Error("connect timed out"), { code: "ETIMEDOUT", syscall: "connect" });
