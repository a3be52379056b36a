import { STATUS_CODES, type IncomingMessage, type ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { afterBody, CountedBody } from "./body.ts";
import { visitorErrors } from "./errors.ts";
import { visitorHeaders } from "./headers.ts";
import type { Origins } from "./origins.ts";
import type { OriginTls, Path, Race, Route } from "./route.ts";

export interface OriginRequest {
  method: string;
  path: string;
  headers: string[];
  addresses: readonly string[];
  port: number;
  /** How the origin is spoken to over TLS; undefined for plain HTTP. */
  tls: OriginTls | undefined;
  ray: string;
  /** Chooses the path where smart routing is on; else the addresses are tried in turn. */
  route: Route | undefined;
}

/** Sends a request to its origin and streams the answer back. Rejects with a visitor error while nothing has been sent. */
export async function forward(
  request: IncomingMessage,
  response: ServerResponse,
  origin: OriginRequest,
  origins: Origins,
  bodyBytesMax: number,
): Promise<void> {
  const { "content-length": length, "transfer-encoding": coding } = request.headers;
  if (Number(length ?? 0) > bodyBytesMax) throw visitorErrors.bodyTooLarge();
  const hasBody = length !== undefined || coding !== undefined;
  let body: CountedBody | null = null;
  const attempt = async (path: Path, race?: Race): Promise<void> => {
    // Read only once a connection stands, so that a failed attempt leaves the body whole for the next path.
    const take = (): CountedBody | null => (body = hasBody ? new CountedBody(request, bodyBytesMax) : null);
    try {
      await dispatch(response, take(), origin, path, race);
    } catch (error) {
      if (hasBody || !repeatable.has(origin.method) || !closedWithoutAnswer(error)) throw error;
      await dispatch(response, take(), origin, path, race);
    }
  };
  if (origin.route !== undefined) {
    const isRepeatable = !hasBody && repeatable.has(origin.method);
    await origin.route.send(attempt, isRepeatable, () => body?.isTouched !== true);
  } else {
    await origins.connect(origin.addresses, origin.port, async (address) =>
      attempt({ dispatcher: await origins.pool(address, origin.port, origin.tls) }),
    );
  }
  // An origin may answer before it has everything: the rest must not block the visitor's connection.
  (body as CountedBody | null)?.destroy();
  if (hasBody) afterBody(request, () => request.complete || request.destroy());
}

/** Methods that mean the same when they are sent twice (RFC 9110, 9.2.1). */
const repeatable: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** What it looks like when an origin closes a kept connection just as a request goes out on it. */
const closedWithoutAnswer = (error: unknown): boolean =>
  ["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"].includes((error as { code?: string }).code ?? "");

/** The origin's status text, or the usual one where it cannot be passed on. */
const reason = (status: number, text = ""): string =>
  /^[\t\x20-\x7e]+$/.test(text) ? text : (STATUS_CODES[status] ?? "");

function dispatch(
  response: ServerResponse,
  body: Readable | null,
  origin: OriginRequest,
  path: Path,
  race: Race | undefined,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | undefined;
    let hasAnswered = false;
    const abandon = (): void => controller?.abort(new Error("the visitor left"));
    const resume = (): void => controller?.resume();
    const settle = (): void => {
      response.off("close", abandon);
      response.off("drain", resume);
    };
    response.on("close", abandon);
    const headers = path.headers?.(origin.headers) ?? origin.headers;
    path.dispatcher.dispatch(
      { method: origin.method, path: origin.path, headers, body },
      {
        onRequestStart(started) {
          controller = started;
          race?.started((why) => started.abort(why));
          if (response.destroyed) abandon();
        },
        onResponseStart(started, status, received, statusText) {
          if (status < 200) return; // an interim answer is between the origin and the edge
          const failure = path.failure?.(status, received) ?? race?.claim(status);
          if (failure !== undefined) {
            started.abort(failure);
            return;
          }
          // Over HTTP/2 there are no raw ones.
          const raw = Array.isArray(started.rawHeaders)
            ? (started.rawHeaders as Buffer[]).map((each) => each.toString("latin1"))
            : Object.entries(received).flatMap(([name, value]) =>
                [value ?? []].flat().flatMap((each) => [name, each]),
              );
          hasAnswered = true;
          response.on("drain", resume);
          response.writeHead(status, reason(status, statusText), visitorHeaders(raw, origin.ray, status));
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
          if (hasAnswered || response.destroyed) {
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
