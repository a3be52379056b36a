import type { IncomingMessage } from "node:http";
import { cellHeaders } from "../../sandbox/protocol.ts";
import type { CellRequest } from "../../sandbox/gateway/exchange.ts";
import { CountedBody } from "../../edge/http/body.ts";
import { visitorErrors } from "../../edge/http/errors.ts";
import type { EdgeRequest } from "../../edge/request/handlers.ts";
import { externalHeaders } from "../../edge/http/headers.ts";
import type { CallTarget } from "./run-context.ts";
import { entrypointName } from "./run-parts.ts";

/** Converts a visitor's request for a script. */
export function visitorRequest(edgeRequest: EdgeRequest, body: CountedBody | null): CellRequest {
  const { request, path, isTls, cf } = edgeRequest;
  const headers = edgeRequest.scriptHeaders();
  headers.push(cellHeaders.proto, isTls ? "https" : "http");
  return { method: request.method ?? "GET", path, headers, body, cf: cf() };
}

/** Converts a script's request for the script that it calls. */
export function nestedRequest(
  { context, entrypoint, params, seesCf }: CallTarget,
  url: URL,
  request: IncomingMessage,
  body: CountedBody | null,
): CellRequest {
  const headers = externalHeaders(request.rawHeaders, url.host);
  headers.push(cellHeaders.proto, url.protocol.slice(0, -1));
  const { edgeRequest } = context.root;
  return {
    method: request.method ?? "GET",
    path: url.pathname + url.search,
    headers,
    body,
    ...(seesCf && edgeRequest !== undefined && { cf: edgeRequest.cf() }),
    metadata: { entrypoint: entrypointName(entrypoint), ...(params && { params }) },
  };
}

/** The body of a request; null without one. Throws a visitor error if its length exceeds `bytesMax`. */
export function bodyOf(request: IncomingMessage, bytesMax: number): CountedBody | null {
  const { "content-length": length, "transfer-encoding": coding } = request.headers;
  if (Number(length ?? 0) > bytesMax) throw visitorErrors.bodyTooLarge();
  return length !== undefined || coding !== undefined ? new CountedBody(request, bytesMax) : null;
}

/** A request whose run collects its logs. */
export const traced = (request: CellRequest): CellRequest => ({
  ...request,
  metadata: { ...request.metadata, isTraced: true },
});
