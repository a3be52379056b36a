import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { afterBody } from "../../platform/listen/after-body.ts";
import { breakOff, endWith } from "../../platform/util/raw-http.ts";
import type { ShownException, VisitorError } from "../http/errors.ts";

const escapes: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => escapes[character]!);

/** Whether JSON is listed with a higher quality than HTML. A wildcard does not count as HTML. */
function prefersJson(accept: string): boolean {
  const [json, html] = [quality(accept, /^application\/(?:\S+\+)?json$/), quality(accept, /^text\/html$/)];
  return json > html;
}

/** The quality of a type in an Accept header; 0 when it is not listed. */
function quality(accept: string, type: RegExp): number {
  const rates = accept.split(",").map((part) => {
    const [name = "", ...parameters] = part.split(";").map((each) => each.trim().toLowerCase());
    if (!type.test(name)) return 0;
    const rate = Number(/^q=(.*)$/.exec(parameters.find((each) => each.startsWith("q=")) ?? "")?.[1] ?? 1);
    return rate >= 0 && rate <= 1 ? rate : 0;
  });
  return Math.max(...rates);
}

/** The exception of a script, shown to visitors on this machine only. */
const exceptionHtml = ({ name, message, stack }: ShownException): string =>
  `\n<pre>${escapeHtml(stack ?? `${name}: ${message}`)}</pre>\n<p><small>Only visitors on this machine see this.</small></p>`;

/** The page of a visitor error: HTML without external resources, or JSON for clients that accept it. */
export function renderError(
  error: VisitorError,
  accept: string,
  ray: string,
  host: string,
): { type: string; body: string } {
  const { exception } = error;
  if (prefersJson(accept)) {
    const body = JSON.stringify({
      error: { code: error.code, title: error.title, message: error.message, ray, exception },
    });
    return { type: "application/json", body: `${body}\n` };
  }
  return {
    type: "text/html; charset=utf-8",
    body: `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(error.title)}</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:15vh auto;padding:0 1rem}small{color:#666}pre{overflow:auto;font-size:.85rem}</style></head>
<body><h1>${escapeHtml(error.title)}</h1><p>${escapeHtml(error.message)}</p>
<p><small>${host === "" ? "" : `${escapeHtml(host)} · `}error ${error.code} · ray ${escapeHtml(ray)}</small></p>${exception === undefined ? "" : exceptionHtml(exception)}</body></html>
`,
  };
}

/** The Retry-After header, for errors that have one. */
const retryAfter = ({ retryAfterSeconds }: VisitorError): Record<string, number> =>
  retryAfterSeconds === undefined ? {} : { "retry-after": retryAfterSeconds };

/** Sends the error's page, or aborts the connection when a response has begun. */
export function respondWithError(
  request: IncomingMessage,
  response: ServerResponse,
  error: VisitorError,
  ray: string,
): void {
  if (response.headersSent || response.destroyed) {
    breakOff(response);
    return;
  }
  const { type, body } = renderError(error, request.headers.accept ?? "", ray, request.headers.host ?? "");
  // Bytes after a malformed or partly read request must not be parsed as another request.
  const isLast = !request.complete || error.status === 400 || error.status === 431;
  const close = isLast ? { connection: "close" } : {};
  response.writeHead(error.status, error.title, {
    "content-type": type,
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
    "cf-ray": ray,
    server: "selvedge",
    ...retryAfter(error),
    ...close,
  });
  if (request.method !== "HEAD") response.write(body);
  else response.flushHeaders();
  afterBody(request, () => response.end());
}

/** Sends the error's page on the raw connection of an upgrade request, and closes the connection. */
export function endWithErrorPage(
  socket: Duplex,
  request: IncomingMessage,
  error: VisitorError,
  ray: string,
): void {
  const { type, body } = renderError(error, request.headers.accept ?? "", ray, request.headers.host ?? "");
  const length = Buffer.byteLength(body);
  const more = Object.entries(retryAfter(error)).map(([name, value]) => `${name}: ${value}\r\n`);
  endWith(
    socket,
    `HTTP/1.1 ${error.status} ${error.title}\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\ncf-ray: ${ray}\r\n${more.join("")}connection: close\r\n\r\n${body}`,
  );
}
