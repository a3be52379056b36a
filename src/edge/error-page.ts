import type { IncomingMessage, ServerResponse } from "node:http";
import { afterBody } from "./body.ts";
import type { VisitorError } from "./errors.ts";

const escapes: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => escapes[character]!);

/** The page of a visitor error: HTML that loads nothing, or JSON for a client that asks for it. */
export function renderError(
  error: VisitorError,
  accept: string,
  ray: string,
  host: string,
): { type: string; body: string } {
  if (/\bapplication\/(\S+\+)?json\b/.test(accept) && !accept.includes("text/html")) {
    const body = JSON.stringify({
      error: { code: error.code, title: error.title, message: error.message, ray },
    });
    return { type: "application/json", body: `${body}\n` };
  }
  return {
    type: "text/html; charset=utf-8",
    body: `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(error.title)}</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:15vh auto;padding:0 1rem}small{color:#666}</style></head>
<body><h1>${escapeHtml(error.title)}</h1><p>${escapeHtml(error.message)}</p>
<p><small>${host === "" ? "" : `${escapeHtml(host)} · `}error ${error.code} · ray ${escapeHtml(ray)}</small></p></body></html>
`,
  };
}

/** Answers with the error's page, or ends the connection when an answer has begun already. */
export function answerError(
  request: IncomingMessage,
  response: ServerResponse,
  error: VisitorError,
  ray: string,
): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const { type, body } = renderError(error, request.headers.accept ?? "", ray, request.headers.host ?? "");
  // What follows a request that was not understood, or not read to its end, is not to be taken for another one.
  const isLast = !request.complete || error.status === 400 || error.status === 431;
  const close = isLast ? { connection: "close" } : {};
  response.writeHead(error.status, error.title, {
    "content-type": type,
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
    "cf-ray": ray,
    server: "selvedge",
    ...close,
  });
  if (request.method !== "HEAD") response.write(body);
  else response.flushHeaders();
  afterBody(request, () => response.end());
}
