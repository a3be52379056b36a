import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { renderError } from "./error-page.ts";
import { visitorErrors, type VisitorError } from "../http/errors.ts";

export interface ParseError extends Error {
  code?: string;
  /** The packet at which the parser failed. */
  rawPacket?: Buffer;
}

/** Sends an error page for unparsable bytes when that is possible, and closes the connection. */
export function refuseMalformed(
  error: ParseError,
  socket: Duplex,
  answer: ServerResponse | undefined,
  ray: string,
): void {
  // A response that has begun, or waits for another, must not be mixed with this one.
  const isAnswering =
    answer !== undefined && !answer.writableFinished && (answer.headersSent || answer.socket === null);
  if (!socket.writable || isAnswering) {
    socket.destroy();
    return;
  }
  const end = (text: string): void => {
    socket.end(text, () => socket.destroy());
  };
  if (error.code === "ERR_HTTP_REQUEST_TIMEOUT")
    end("HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
  else end(page(refusalOf(error), error.rawPacket, ray));
}

const refusalOf = ({ code }: ParseError): VisitorError =>
  code === "HPE_HEADER_OVERFLOW" || code === "HPE_CHUNK_EXTENSIONS_OVERFLOW"
    ? visitorErrors.headersTooLarge()
    : visitorErrors.badRequest("The request is not valid HTTP (RFC 9112).");

/** There is no parsed request. Its bytes only decide whether the page is HTML or JSON. */
function page(refusal: VisitorError, packet: Buffer | undefined, ray: string): string {
  const accept = /^accept:[ \t]*([^\r\n]*)/im.exec(packet?.toString("latin1") ?? "")?.[1] ?? "";
  const { type, body } = renderError(refusal, accept, ray, "");
  return [
    `HTTP/1.1 ${refusal.status} ${refusal.title}`,
    `content-type: ${type}`,
    `content-length: ${Buffer.byteLength(body)}`,
    "cache-control: no-store",
    `cf-ray: ${ray}`,
    "server: selvedge",
    "connection: close",
    "",
    body,
  ].join("\r\n");
}
