import type { IncomingMessage, ServerResponse } from "node:http";
import { Transform, type Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { originError, visitorErrors } from "./errors.ts";
import { visitorHeaders } from "./headers.ts";
import type { Origins } from "./origins.ts";

export interface OriginRequest {
  method: string;
  path: string;
  headers: string[];
  addresses: readonly string[];
  port: number;
  ray: string;
}

const connectFailures: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EADDRNOTAVAIL",
  "ETIMEDOUT",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Sends a request to its origin and streams the answer back. Rejects with a visitor error while nothing has been sent. */
export async function forward(
  request: IncomingMessage,
  response: ServerResponse,
  origin: OriginRequest,
  origins: Origins,
  bodyBytesMax: number,
): Promise<void> {
  const hasBody =
    request.headers["content-length"] !== undefined || request.headers["transfer-encoding"] !== undefined;
  if (Number(request.headers["content-length"] ?? 0) > bodyBytesMax) throw visitorErrors.bodyTooLarge();
  // A length that was declared is enforced by the parser; a chunked body is counted.
  const isCounted = hasBody && request.headers["content-length"] === undefined;
  const body = hasBody ? (isCounted ? request.pipe(limit(bodyBytesMax)) : request) : null;
  let failure: unknown;
  for (const address of origin.addresses) {
    try {
      await dispatch(response, body, origin, origins.pool(address, origin.port));
      return;
    } catch (error) {
      failure = error;
      const code = (error as { code?: string }).code ?? "";
      if (!connectFailures.has(code)) break;
      origins.markDown(address, origin.port);
      // undici has ended the body with the failed attempt, so only a request without one goes to the next address.
      if (body !== null) break;
    }
  }
  throw originError(failure);
}

function limit(bytesMax: number): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > bytesMax) done(visitorErrors.bodyTooLarge());
      else done(null, chunk);
    },
  });
}

function dispatch(
  response: ServerResponse,
  body: Readable | null,
  origin: OriginRequest,
  dispatcher: Dispatcher,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | undefined;
    const abandon = (): void => controller?.abort(new Error("the visitor left"));
    const resume = (): void => controller?.resume();
    const settle = (): void => {
      response.off("close", abandon);
      response.off("drain", resume);
    };
    response.on("close", abandon);
    dispatcher.dispatch(
      { method: origin.method, path: origin.path, headers: origin.headers, body },
      {
        onRequestStart(started) {
          controller = started;
          if (response.destroyed) abandon();
        },
        onResponseStart(started, status, _headers, statusText) {
          if (status < 200) return; // an interim answer is between the origin and the edge
          const raw = (started.rawHeaders as Buffer[]).map((each) => each.toString("latin1"));
          response.on("drain", resume);
          response.writeHead(status, statusText, visitorHeaders(raw, origin.ray));
        },
        onResponseData(started, chunk) {
          if (!response.write(chunk)) started.pause();
        },
        onResponseEnd(_started, trailers) {
          settle();
          if (Object.keys(trailers).length > 0) response.addTrailers(trailers);
          response.end();
          resolve();
        },
        onResponseError(_started, error) {
          settle();
          if (response.headersSent || response.destroyed) {
            // The visitor has a part of the answer: only an end that is no proper end says that it is not whole.
            response.destroy();
            resolve();
          } else {
            reject(error);
          }
        },
      },
    );
  });
}
