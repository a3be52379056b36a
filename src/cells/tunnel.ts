import { request as httpRequest, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { answerHead, join } from "../util/raw-http.ts";
import { internal } from "./cell-folder.ts";
import { parseThrown, type CellRequest, type Thrown } from "./exchange.ts";

/** Somebody who asks for a WebSocket, on a connection that is no longer HTTP's. */
export interface Visitor {
  socket: Socket;
  /** What came after the request. */
  head: Buffer;
  /** The headers that the visitor gets for those of the script. */
  headers: (raw: readonly string[], status: number) => string[];
  idleTimeoutMs: number;
}

/**
 * Asks a script for an upgrade, and joins the two connections. Any other answer is passed on, and the connection ends
 * with it. Resolves when it is over, with what the script threw, if it did; rejects while nothing has been sent.
 */
export function tunnel(
  socketPath: string,
  request: CellRequest,
  visitor: Visitor,
  secret: string,
  onActivity: () => void,
): Promise<Thrown | undefined> {
  const { socket, head } = visitor;
  return new Promise((resolve, reject) => {
    const upstream = httpRequest({
      socketPath,
      method: request.method,
      path: request.path,
      headers: [...request.headers, "connection", "upgrade", "upgrade", "websocket"],
      agent: false,
    });
    const leave = (): void => void upstream.destroy();
    socket.on("close", leave);
    upstream.on("error", (error) => {
      socket.off("close", leave);
      if (socket.destroyed) resolve(undefined);
      else reject(error);
    });
    upstream.on("response", (answer) => {
      onActivity();
      socket.off("close", leave);
      if (answer.headers[internal.outcome] === secret) void collect(answer).then(resolve, reject);
      else void passOn(answer, visitor).then(resolve, reject);
    });
    upstream.on("upgrade", (answer: IncomingMessage, cell: Socket, cellHead: Buffer) => {
      onActivity();
      socket.off("close", leave);
      const headers = [
        ...visitor.headers(answer.rawHeaders, 101),
        "connection",
        "upgrade",
        "upgrade",
        "websocket",
      ];
      socket.write(answerHead(101, "Switching Protocols", headers), "latin1");
      if (cellHead.length > 0) socket.write(cellHead);
      if (head.length > 0) cell.write(head);
      cell.on("data", onActivity);
      join(socket, cell, visitor.idleTimeoutMs);
      join(cell, socket, visitor.idleTimeoutMs);
      socket.on("close", () => resolve(undefined));
    });
    upstream.end();
  });
}

async function collect(answer: IncomingMessage): Promise<Thrown> {
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  return parseThrown(Buffer.concat(chunks));
}

async function passOn(answer: IncomingMessage, { socket, headers }: Visitor): Promise<undefined> {
  const { statusCode = 502, statusMessage = "" } = answer;
  const raw = [...headers(answer.rawHeaders, statusCode), "connection", "close"];
  socket.write(answerHead(statusCode, statusMessage, raw), "latin1");
  for await (const chunk of answer) {
    if (!socket.write(chunk as Buffer) && !socket.destroyed)
      await new Promise<void>((resolve) => socket.once("drain", resolve).once("close", () => resolve()));
  }
  socket.end();
  return undefined;
}
