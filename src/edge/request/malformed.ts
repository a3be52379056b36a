import type { Duplex } from "node:stream";
import { visitorErrors, type VisitorError } from "../http/errors.ts";
import type { RequestError } from "../http-server/errors.ts";
import { renderError } from "./error-page.ts";

/** Sends an error page for unparsable bytes when that is possible, and closes the connection. */
export function refuseMalformed(error: RequestError, socket: Duplex, bytes: string, ray: string): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const text =
    error.reason === "late"
      ? "HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
      : page(refusalOf(error), bytes, ray);
  socket.end(text, () => socket.destroy());
}

const refusalOf = ({ reason }: RequestError): VisitorError =>
  reason === "too large"
    ? visitorErrors.headersTooLarge()
    : visitorErrors.badRequest("The request is not valid HTTP (RFC 9112).");

/** There is no parsed request. Its bytes only decide whether the page is HTML or JSON. */
function page(refusal: VisitorError, bytes: string, ray: string): string {
  const accept = /^accept:[ \t]*([^\r\n]*)/im.exec(bytes)?.[1] ?? "";
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
