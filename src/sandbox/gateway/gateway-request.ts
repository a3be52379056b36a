import { IncomingMessage } from "node:http";
import { cellHeaders } from "../protocol.ts";

/* Requests of cells as the gateway receives them. */

export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

/** Undefined if it is malformed. */
export const urlOf = ({ url = "" }: IncomingMessage): URL | undefined => URL.parse(url) ?? undefined;

/** The id in a path "/script/ID"; empty if it is malformed. */
export function scriptIdOf(path: string): string {
  try {
    return decodeURIComponent(path.slice("/script/".length));
  } catch {
    return "";
  }
}

/**
 * A request whose body is destroyed before its end would block the parser forever, and with it all later
 * requests on the connection. This one drops the rest of the body.
 */
export class CellMessage extends IncomingMessage {
  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    return this.destroyed || super.push(chunk, encoding);
  }
}

/** Resumes the socket when a body is destroyed before its end: it may have been paused. */
export function goOnAfter(request: IncomingMessage): void {
  const { socket } = request;
  request.once("close", () => {
    if (!request.complete) socket.resume();
  });
}

const runProtocol = `${cellHeaders.run}.`;

/**
 * A WebSocket made with `new` cannot have headers, so its token is the last of its protocols. Takes it out of
 * the list and returns it.
 */
export function takeRunProtocol({ rawHeaders }: IncomingMessage): string | undefined {
  const at = rawHeaders.findIndex((name, i) => i % 2 === 0 && /^sec-websocket-protocol$/i.test(name));
  const offered = rawHeaders[at + 1]?.split(",").map((protocol) => protocol.trim()) ?? [];
  if (at < 0 || offered.at(-1)?.startsWith(runProtocol) !== true) return undefined;
  const token = offered.pop()!.slice(runProtocol.length);
  if (offered.length === 0) rawHeaders.splice(at, 2);
  else rawHeaders[at + 1] = offered.join(", ");
  return token;
}
