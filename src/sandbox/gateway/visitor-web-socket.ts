import { request as httpRequest, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { closeWebSocket } from "../../edge/http/going-away.ts";
import { joinUpgraded } from "../../edge/http/join-upgraded.ts";
import { responseHead, endWith } from "../../platform/util/raw-http.ts";
import { readUpTo } from "../../platform/util/read-up-to.ts";
import { cellHeaders } from "../protocol.ts";
import { parseThrown } from "./cell-messages.ts";
import { thrownBytesMax, type CellRequest, type Thrown } from "./exchange.ts";
import type { CellRun } from "./cell-run.ts";
import { PacedSocket, withoutExtensions, type WebSocketLimits } from "../connections/paced-socket.ts";
import { unawaited } from "../../platform/util/uncaught.ts";

/** A visitor who requested an upgrade, with the connection taken over from the HTTP server. */
export interface Visitor {
  socket: Socket;
  /** Bytes received after the request. */
  head: Buffer;
  /** Converts the script's headers for the visitor. */
  headers: (raw: readonly string[], status: number) => string[];
  idleTimeoutMs: number;
  /** Called when bytes of the visitor arrive after the upgrade. */
  onData?: (() => void) | undefined;
}

/**
 * Sends an upgrade to a script and joins the two connections. Any other answer is passed on, and the
 * connection is closed after it. Resolves at the end, with the script's exception if it threw one; rejects if
 * nothing was sent yet. `open` connects to the cell. Sets the run's controller, which ends both connections.
 */
export function joinVisitorWebSocket(
  open: () => Socket,
  request: CellRequest,
  visitor: Visitor,
  secret: string,
  onActivity: () => void,
  cellRun: Pick<CellRun, "controller" | "hasAnswer" | "script">,
  limits: WebSocketLimits,
): Promise<Thrown | undefined> {
  const { socket } = visitor;
  return new Promise((resolve, reject) => {
    const upstream = httpRequest({
      createConnection: open, // without an agent
      method: request.method,
      path: request.path,
      headers: [...withoutExtensions(request.headers), "connection", "upgrade", "upgrade", "websocket"],
    });
    cellRun.controller = {
      abort: (reason) => {
        upstream.destroy(reason);
      },
    };
    const leave = (): void => {
      upstream.destroy();
    };
    const begin = (): void => {
      cellRun.hasAnswer = true;
      onActivity();
      socket.off("close", leave);
    };
    socket.on("close", leave);
    upstream.on("error", (error) => {
      socket.off("close", leave);
      if (socket.destroyed) resolve(undefined);
      else reject(error);
    });
    upstream.on("response", (answer) => {
      begin();
      if (answer.headers[cellHeaders.outcome] === secret) unawaited(collect(answer).then(resolve, reject));
      else unawaited(passOn(answer, visitor).then(resolve, reject));
    });
    upstream.on("upgrade", (answer: IncomingMessage, upgraded: Socket, head: Buffer) => {
      begin();
      upgraded.on("data", onActivity);
      if (visitor.onData !== undefined) socket.on("data", visitor.onData);
      const cell = pacedFor(socket, upgraded, cellRun.script.accountId, limits);
      cellRun.controller = { abort: () => cell.destroy() };
      joinUpgraded(
        visitor,
        { socket: cell as unknown as Socket, head },
        "Switching Protocols",
        visitor.headers(answer.rawHeaders, 101),
        visitor.idleTimeoutMs,
      );
      socket.on("close", () => resolve(undefined));
    });
    upstream.end();
  });
}

/** The connection with a cell, which closes the visitor's WebSocket when its messages are refused. */
function pacedFor(
  visitor: Socket,
  upgraded: Socket,
  accountId: string,
  limits: WebSocketLimits,
): PacedSocket {
  const cell = new PacedSocket(upgraded, accountId, limits, true);
  cell.onRefused = (status) => closeWebSocket(visitor, status);
  return cell;
}

async function collect(answer: IncomingMessage): Promise<Thrown> {
  return parseThrown(await readUpTo(answer, thrownBytesMax));
}

async function passOn(answer: IncomingMessage, { socket, headers }: Visitor): Promise<undefined> {
  const { statusCode = 502, statusMessage = "" } = answer;
  const raw = [...headers(answer.rawHeaders, statusCode), "connection", "close"];
  socket.write(responseHead(statusCode, statusMessage, raw), "latin1");
  for await (const chunk of answer) {
    if (!socket.write(chunk as Buffer) && !socket.destroyed)
      await new Promise<void>((resolve) => socket.once("drain", resolve).once("close", () => resolve()));
  }
  endWith(socket, "");
  return undefined;
}
