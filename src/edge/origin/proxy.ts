import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import type { AccessRecord } from "../../platform/access-log/access-record.ts";
import { afterBody } from "../../platform/util/after-body.ts";
import { CountedBody } from "../http/body.ts";
import { attemptAnswered, attemptFailed, beginAttempt, type OriginTrace } from "./attempt-trace.ts";
import { visitorErrors } from "../http/errors.ts";
import { visitorHeaders, visitorTrailers } from "../http/headers.ts";
import type { Origins } from "./origins.ts";
import type { OriginTls, Path, Race, EdgeRoute } from "../configuration/route.ts";
import { breakOff } from "../../platform/util/raw-http.ts";
import { reasonPhrase } from "../../platform/util/reason-phrase.ts";

export interface OriginRequest {
  /** The account, or the zone, whose connections are used. */
  tenant: string;
  method: string;
  path: string;
  headers: string[];
  addresses: readonly string[];
  port: number;
  /** TLS settings for the origin; undefined for plain HTTP. */
  tls: OriginTls | undefined;
  ray: string;
  /** The visitor's entry in the access log; undefined if there is none. */
  record?: AccessRecord | undefined;
  /** Undefined without traces. */
  trace?: OriginTrace | undefined;
  /** Chooses the path when smart routing is on; otherwise the addresses are tried in turn. */
  route: EdgeRoute | undefined;
}

/**
 * Sends a request to its origin and streams the response back. Rejects with a visitor error while nothing has
 * been sent.
 */
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
    // Read only after a connection is established, so that a failed attempt leaves the whole body for the
    // next path.
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
      attempt({ dispatcher: await origins.pool(origin.tenant, address, origin.port, origin.tls), address }),
    );
  }
  // The origin may respond before the end of the body; the rest must not block the visitor's connection.
  (body as CountedBody | null)?.destroy();
  if (hasBody) afterBody(request, () => request.complete || request.destroy());
}

/** Safe methods, which may be sent twice (RFC 9110, 9.2.1). */
const repeatable: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** The error when an origin closes an idle connection just as a request is sent on it. */
const closedWithoutAnswer = (error: unknown): boolean =>
  ["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"].includes((error as { code?: string }).code ?? "");

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
    const traced = beginAttempt(origin, path);
    const span = traced?.span;
    const sent = traced?.headers ?? origin.headers;
    const headers = path.headers?.(sent) ?? sent;
    const { record } = origin;
    record?.asksOrigin(path.address);
    path.dispatcher.dispatch(
      { method: origin.method, path: origin.path, headers, body },
      {
        onRequestStart(started) {
          controller = started;
          race?.started((why) => started.abort(why));
          if (response.destroyed) abandon();
        },
        onResponseStart(started, status, received, statusText) {
          if (status < 200) return; // interim responses stay between the origin and the edge
          const failure = path.failure?.(status, received) ?? race?.claim(status);
          if (failure !== undefined) {
            started.abort(failure);
            return;
          }
          record?.originAnswers(status);
          if (span !== undefined) attemptAnswered(span, status);
          // HTTP/2 has no raw headers.
          const raw = Array.isArray(started.rawHeaders)
            ? (started.rawHeaders as Buffer[]).map((each) => each.toString("latin1"))
            : Object.entries(received).flatMap(([name, value]) =>
                [value ?? []].flat().flatMap((each) => [name, each]),
              );
          try {
            response.writeHead(
              status,
              reasonPhrase(status, statusText),
              visitorHeaders(raw, origin.ray, status),
            );
          } catch (error) {
            started.abort(visitorErrors.originFailed(error)); // a status or header that cannot be sent to this visitor
            return;
          }
          hasAnswered = true;
          response.on("drain", resume);
        },
        onResponseData(started, chunk) {
          if (!response.write(chunk)) started.pause();
        },
        onResponseEnd(_started, trailers) {
          settle();
          span?.end();
          const kept = visitorTrailers(trailers);
          if (kept !== undefined) response.addTrailers(kept);
          response.end();
          resolve();
        },
        onResponseError(_started, error) {
          settle();
          if (span !== undefined) attemptFailed(span, error);
          if (hasAnswered || response.destroyed) {
            // The visitor has part of the response: only an abnormal close shows that it is incomplete.
            breakOff(response);
            resolve();
          } else {
            reject(error);
          }
        },
      },
    );
  });
}
