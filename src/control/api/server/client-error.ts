import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** The statuses that Node itself uses for its parser's errors. All other errors get 400. */
const statuses: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/**
 * Answers malformed HTTP in the envelope. Garbage after a complete request does not affect its response: the
 * response is sent and then the connection closes, as in nginx. Some clients pad their requests with NUL
 * bytes.
 */
export function answerClientErrors(server: Server): void {
  interface Call {
    request: IncomingMessage;
    response: ServerResponse;
    isLast: boolean;
  }
  const calls = new WeakMap<Duplex, Call>();
  server.prependListener("request", (request: IncomingMessage, response: ServerResponse) => {
    calls.set(request.socket, { request, response, isLast: false });
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
    const call = calls.get(socket);
    if (call?.request.complete !== true) {
      refuse(error, socket);
    } else if (call.response.writableFinished) {
      endSoon(socket);
    } else if (!call.isLast) {
      call.isLast = true;
      call.response.once("finish", () => endSoon(socket));
    }
  });
}

function refuse(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const status = statuses[error.code ?? ""] ?? 400;
  const message = `The request is not valid HTTP: ${STATUS_CODES[status]}`;
  const body = JSON.stringify({
    result: null,
    success: false,
    errors: [{ code: 6003, message }],
    messages: [],
  });
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}

/** Closes a connection after its pending writes. */
function endSoon(socket: Duplex): void {
  if (socket.writableEnded) return;
  socket.end(() => socket.destroy());
}
