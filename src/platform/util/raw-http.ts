import { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex, Writable } from "node:stream";
import { reasonPhrase } from "./reason-phrase.ts";

/** The head of a response, for sockets taken over from Node's HTTP server. */
export function responseHead(status: number, statusText: string, headers: readonly string[]): string {
  let text = `HTTP/1.1 ${status} ${reasonPhrase(status, statusText)}\r\n`;
  for (let i = 0; i < headers.length; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return `${text}\r\n`;
}

/** Pipes one socket into another. If `from` closes, `to` still receives the data sent before. */
export function join(from: Socket, to: Socket, idleTimeoutMs: number): void {
  from.setTimeout(idleTimeoutMs, () => from.destroy());
  from.on("error", () => from.destroy());
  from.on("close", () => to.destroySoon());
  if (from.destroyed) to.destroySoon();
  else from.pipe(to);
}

/** Time for the peer to read the last data and close the connection. */
const lastMs = 5000;

/**
 * Sends a final text on a socket taken over from Node's HTTP server. Further input is read and dropped,
 * because an unread socket never notices that the peer has closed, and would stay open forever.
 */
export function endWith(socket: Duplex, text: string): void {
  socket.on("error", () => socket.destroy());
  socket.resume().end(text, "latin1");
  const timer = setTimeout(() => socket.destroy(), lastMs).unref();
  socket.once("close", () => clearTimeout(timer));
}

/** Aborts a response: the client receives the status and the data so far, and then an improper end. */
export function breakOff(response: Writable): void {
  // Node delays the head until there is a body.
  if (response instanceof ServerResponse && response.socket !== null && !response.destroyed) {
    response.flushHeaders();
    response.socket.destroySoon();
  } else response.destroy();
}
