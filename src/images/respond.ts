import { createReadStream } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { failure } from "../api/envelope.ts";
import type { ApiError } from "../api/errors.ts";
import { resizedCode } from "./errors.ts";
import type { Stored } from "./results.ts";

/** Headers of every picture: it may be shown anywhere, and nothing in it is ever run. */
export const safeHeaders = {
  "cross-origin-resource-policy": "cross-origin",
  "timing-allow-origin": "*",
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox",
} as const;

/** Whether the client has the picture already. */
export function isNotModified(request: IncomingMessage, etag: string, modifiedMs: number): boolean {
  const { "if-none-match": tags, "if-modified-since": since } = request.headers;
  if (tags !== undefined)
    return tags.trim() === "*" || tags.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
  return since !== undefined && Math.floor(modifiedMs / 1000) * 1000 <= Date.parse(since);
}

/** Answers with a picture, or with the part of it that is asked for. Headers are names and values in turn. */
export async function sendStored(
  request: IncomingMessage,
  response: ServerResponse,
  stored: Stored,
  etag: string,
  headers: string[],
): Promise<void> {
  const { release } = "bytes" in stored ? stored : {};
  if (response.destroyed) return release?.(); // the visitor has left, which was told before
  if (release !== undefined) response.once("close", release);
  const sizeBytes = "bytes" in stored ? stored.bytes.length : stored.sizeBytes;
  const range = rangeOf(request, sizeBytes, etag);
  if (range === "unsatisfiable") {
    headers.push("content-range", `bytes */${sizeBytes}`, "content-length", "0");
    response.writeHead(416, headers).end();
    return;
  }
  const { start, end } = range ?? { start: 0, end: sizeBytes - 1 };
  headers.push("content-length", String(end - start + 1));
  if (range !== undefined) headers.push("content-range", `bytes ${start}-${end}/${sizeBytes}`);
  response.writeHead(range === undefined ? 200 : 206, headers);
  if (request.method === "HEAD") response.end();
  else if ("bytes" in stored)
    response.end(range === undefined ? stored.bytes : stored.bytes.subarray(start, end + 1));
  else {
    const file = createReadStream(stored.path, { start, end, highWaterMark: 256 * 1024 });
    // A visitor who leaves in the middle is no fault of anybody's.
    await pipeline(file, response).catch(() => response.destroy());
  }
}

/** A single range of bytes that is to be sent. Anything else is answered whole, as the standard allows. */
function rangeOf(
  request: IncomingMessage,
  sizeBytes: number,
  etag: string,
): { start: number; end: number } | "unsatisfiable" | undefined {
  const { range, "if-range": condition } = request.headers;
  const isAsked = request.method === "GET" && range !== undefined;
  if (!isAsked || (condition !== undefined && condition !== etag)) return undefined;
  const match = /^bytes=(\d*)-(\d*)$/.exec(range.trim());
  if (match === null || (match[1] === "" && match[2] === "")) return undefined;
  const [first, last] = [match[1]!, match[2]!];
  const start = first === "" ? Math.max(0, sizeBytes - Number(last)) : Number(first);
  const end = first === "" || last === "" ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1);
  if (first !== "" && last !== "" && Number(last) < start) return undefined;
  return start >= sizeBytes || (first === "" && Number(last) === 0) ? "unsatisfiable" : { start, end };
}

/** Answers with what is wrong: in the envelope for a client that asks for JSON, as a line of text for the others. */
export async function sendError(
  request: IncomingMessage,
  response: ServerResponse,
  error: ApiError,
  requestId: string,
): Promise<void> {
  const isJson = /\bapplication\/(\S+\+)?json\b/.test(request.headers.accept ?? "");
  const envelope = isJson ? await failure(error, requestId).text() : undefined;
  const body = envelope ?? `ERROR ${error.code}: ${error.message}\n`;
  const isTemporary = error.status >= 500 || error.status === 429 || error.status === 403;
  response.writeHead(error.status, {
    "access-control-allow-origin": "*",
    ...safeHeaders,
    "content-type": isJson ? "application/json" : "text/plain; charset=utf-8",
    "content-length": Buffer.byteLength(body),
    "cache-control": isTemporary ? "no-store" : "max-age=0",
    "cf-resized": `err=${resizedCode(error)}`,
    vary: "Accept",
    ...(error.retryAfterSeconds === undefined ? {} : { "retry-after": String(error.retryAfterSeconds) }),
    ...(request.complete || request.method === "GET" || request.method === "HEAD"
      ? {}
      : { connection: "close" }),
  });
  response.end(request.method === "HEAD" ? undefined : body);
}
