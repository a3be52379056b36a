import { open, type FileHandle } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import { pipeline } from "node:stream/promises";
import { failure } from "../../../control/api/envelope.ts";
import { afterBody } from "../../../platform/listen/after-body.ts";
import { ApiError, apiErrorOf, apiErrors, callerError } from "../../../control/api/errors.ts";
import { pictureErrorCodes } from "../api-errors.ts";
import type { Stored } from "../results/results.ts";

/** Headers of every image: any site may show it, and no script in it may run. */
export const safeHeaders = {
  "cross-origin-resource-policy": "cross-origin",
  "timing-allow-origin": "*",
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox",
} as const;

/** Whether the client's copy is current. */
export function isNotModified(request: IncomingMessage, etag: string, modifiedMs: number): boolean {
  const { "if-none-match": tags, "if-modified-since": since } = request.headers;
  if (tags !== undefined)
    return tags.trim() === "*" || tags.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
  return since !== undefined && Math.floor(modifiedMs / 1000) * 1000 <= Date.parse(since);
}

/** The file of a result was removed after the result was found. Nothing has been sent: it can be looked for again. */
export class StoredGone extends Error {}

/** How often a response begins again because its result is gone, or its image has changed. */
export const attemptsMax = 5;

/**
 * Sends a result, or the requested byte range of it. Headers are alternating names and values. Throws when
 * the file cannot be opened, before anything is sent.
 */
export async function sendStored(
  request: IncomingMessage,
  response: ServerResponse,
  stored: Stored,
  etag: string,
  headers: string[],
): Promise<void> {
  const { release } = stored;
  if (response.destroyed) return release?.(); // the client has disconnected
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
  const isSent = request.method !== "HEAD";
  const file = isSent && !("bytes" in stored) ? await opened(stored.path) : undefined;
  response.writeHead(range === undefined ? 200 : 206, headers);
  if (file !== undefined) {
    // A client that disconnects midway is not an error.
    const stream = file.createReadStream({ start, end, highWaterMark: 256 * 1024 });
    await pipeline(stream, response).catch(() => response.destroy());
  } else if (isSent && "bytes" in stored)
    response.end(range === undefined ? stored.bytes : stored.bytes.subarray(start, end + 1));
  else response.end();
}

async function opened(path: string): Promise<FileHandle> {
  return open(path).catch((error: NodeJS.ErrnoException) => {
    throw error.code === "ENOENT" ? new StoredGone("the file of a result is gone", { cause: error }) : error;
  });
}

/** A single byte range. All other Range headers get the whole result, as RFC 9110 (14.2) allows. */
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

/** The error for a method that a path does not have. */
export const noRoute = ({ method = "" }: IncomingMessage, path: string): Error =>
  apiErrors.noRoute(method, path);

/** The form of an error that visitors see; undefined for an internal error. */
export function publicError(error: unknown): ApiError | undefined {
  const shown = error instanceof ApiError ? error : apiErrorOf(error, pictureErrorCodes);
  return shown instanceof ApiError ? shown : undefined;
}

/** As `publicError`, for every error. Internal errors are logged with this message. */
export function visibleError(error: unknown, ray: string, logger: Logger, message: string): ApiError {
  const known = publicError(error);
  if (known !== undefined) return known;
  logger.error({ err: error, ray }, message);
  const shown = callerError(error);
  return shown instanceof ApiError ? shown : apiErrors.internal(ray);
}

/** The public code of a failed transform, for the `cf-resized` header. */
function resizedCode({ status, code }: ApiError): number {
  if (code === 5403) return status === 422 ? 9516 : 9401;
  if (code === 5404) return 9404;
  return code >= 9000 ? code : 9523;
}

/** Sends an error: in the API envelope for clients that accept JSON, otherwise as a line of text. */
export async function sendError(
  request: IncomingMessage,
  response: ServerResponse,
  error: ApiError,
  requestId: string,
  isJson = /\bapplication\/(?:[\w.-]{1,60}\+)?json\b/.test(request.headers.accept ?? ""),
): Promise<void> {
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
  if (request.method === "HEAD") response.flushHeaders();
  else response.write(body);
  afterBody(request, () => response.end());
}
