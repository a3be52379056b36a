import type { IncomingMessage, Server, ServerResponse } from "node:http";

const unsent = new WeakSet<IncomingMessage>();

/**
 * Sends `100 Continue` when a request's body is first read, instead of at once: a request that is refused for its
 * head, such as one that is too large, is answered before its client sends the body (RFC 9110, 10.1.1).
 */
export function holdContinue(request: IncomingMessage, response: ServerResponse): void {
  unsent.add(request);
  const read = request._read.bind(request);
  request._read = (bytes) => {
    // Node reads what is left of a body after the response too.
    if (unsent.delete(request) && !response.headersSent) response.writeContinue();
    request._read = read;
    read(bytes);
  };
}

/** Lets a server of node:http send `100 Continue` when the body is read. */
export function continueWhenRead(server: Server): void {
  server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
    holdContinue(request, response);
    server.emit("request", request, response);
  });
}

/** Whether the client of a request waits for `100 Continue`, and has not sent any of the body without it. */
export const awaitsContinue = (request: IncomingMessage): boolean =>
  unsent.has(request) && request.readableLength === 0;
