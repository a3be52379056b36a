import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { AccessRecord } from "../../platform/access-log/access-record.ts";
import { awaitsContinue } from "../../platform/listen/continue.ts";
import { afterBody } from "../../platform/listen/after-body.ts";
import { CountedBody } from "../http/body.ts";
import { beginAttempt, type OriginTrace } from "./attempt-trace.ts";
import { visitorErrors } from "../http/errors.ts";
import { StaleConnection } from "../origin-client/exchange.ts";
import { ResponseDelivery } from "./response-delivery.ts";
import type { Origins } from "./origins.ts";
import type { OriginTls, Path, Race, EdgeRoute } from "../configuration/route.ts";

/** A request to an origin, as the edge sends it. `headers` are names and values in turn; `addresses` are IP addresses. */
export interface OriginRequest {
  /** The account, or the zone, whose connections are used. */
  tenant: string;
  method: string;
  path: string;
  headers: string[];
  addresses: readonly string[];
  port: number;
  /** For a WebSocket: a Unix socket in place of address and port. */
  socketPath?: string;
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
    body = hasBody ? new CountedBody(request, bodyBytesMax) : null;
    try {
      await send(response, body, false, origin, path, race);
    } catch (error) {
      if (hasBody || !repeatable.has(origin.method) || !closedWithoutResponse(error)) throw error;
      await send(response, null, true, origin, path, race);
    }
  };
  if (origin.route !== undefined) {
    const isRepeatable = !hasBody && repeatable.has(origin.method);
    await origin.route.send(attempt, isRepeatable, () => body?.isTouched !== true);
  } else {
    await origins.connect(origin.addresses, origin.port, async (address) =>
      attempt({ client: origins.client(origin.tenant, address, origin.port, origin.tls), address }),
    );
  }
  // The origin may respond before the end of the body; the rest must not block the visitor's connection.
  (body as CountedBody | null)?.destroy();
  if (hasBody && !awaitsContinue(request)) afterBody(request, () => request.complete || request.destroy());
}

/** Safe methods, which may be sent twice (RFC 9110, 9.2.1). */
const repeatable: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** Whether an origin closed an idle connection just as a request was sent on it. A relay's pool reports this by a code. */
const closedWithoutResponse = (error: unknown): boolean =>
  error instanceof StaleConnection || (error as { code?: string }).code === "UND_ERR_SOCKET";

const send = (
  response: ServerResponse,
  body: Readable | null,
  isFresh: boolean,
  origin: OriginRequest,
  path: Path,
  race: Race | undefined,
): Promise<void> =>
  new Promise((resolve, reject) => {
    const traced = beginAttempt(origin, path);
    const sent = traced?.headers ?? origin.headers;
    const headers = path.headers?.(sent) ?? sent;
    origin.record?.asksOrigin(path.address);
    const delivery = new ResponseDelivery(
      { response, origin, path, race, span: traced?.span },
      resolve,
      reject,
    );
    path.client.send({ method: origin.method, path: origin.path, headers, body, isFresh }, delivery);
  });
