import type { IncomingMessage } from "node:http";
import { visitorErrors } from "../http/errors.ts";
import type { EdgeSettings } from "../http/settings.ts";

export interface RequestTarget {
  host: string;
  /** The host as the visitor wrote it, with its port. */
  authority: string;
  path: string;
}

const overHttp2 = new WeakSet<IncomingMessage>();

/** Whether a visitor has sent a request over HTTP/2. */
export const isHttp2 = (request: IncomingMessage): boolean => "stream" in request || overHttp2.has(request);
/** Marks a request that an edge process passed on over HTTP/1.1 as sent by its visitor over HTTP/2. */
export const markHttp2 = (request: IncomingMessage): void => {
  overHttp2.add(request);
};

/**
 * The host and path of a request. Ambiguous requests, which two servers could parse differently, are refused.
 */
export function parseRequestTarget(request: IncomingMessage, settings: EdgeSettings): RequestTarget {
  const { rawHeaders } = request;
  if (rawHeaders.length / 2 > settings.headerCountMax) throw visitorErrors.headersTooLarge();
  const coding = request.headers["transfer-encoding"]?.toLowerCase();
  if (
    !isHttp2(request) &&
    request.httpVersion !== "1.1" &&
    (request.httpVersion !== "1.0" || coding !== undefined)
  )
    throw visitorErrors.badRequest(
      "Expected HTTP/1.1, or HTTP/1.0 without Transfer-Encoding, in the request line.",
    );
  if (coding !== undefined && coding !== "chunked")
    throw visitorErrors.badRequest("The only supported Transfer-Encoding is chunked.");
  let authority: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.length !== 4 || rawHeaders[i]!.toLowerCase() !== "host") continue;
    if (authority !== undefined) throw visitorErrors.badRequest("The request has more than one Host header.");
    authority = rawHeaders[i + 1]!;
  }
  let path = request.url ?? "/";
  if (path.includes("#")) throw visitorErrors.badRequest("The request line has a fragment.");
  if (!path.startsWith("/")) {
    // In absolute form the request line has the host, and a different Host header is not trusted.
    const match = /^https?:\/\/([^/?]+)(\/.*|\?.*)?$/i.exec(path);
    if (match === null) throw visitorErrors.badRequest("The path in the request line is invalid.");
    if (authority !== undefined && authority.toLowerCase() !== match[1]!.toLowerCase()) {
      throw visitorErrors.badRequest("The Host header differs from the host in the request line.");
    }
    authority = match[1]!;
    const rest = match[2] ?? "/";
    path = rest.startsWith("?") ? `/${rest}` : rest;
  }
  return { ...parseAuthority(authority), path };
}

function parseAuthority(authority: string | undefined): Omit<RequestTarget, "path"> {
  const match = /^(?:([a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?)|(\[[\da-f:.]+\]))(?::(\d{1,5}))?$/i.exec(
    authority ?? "",
  );
  if (match === null || (match[1]?.length ?? 0) > 254 || Number(match[3] ?? 0) > 65_535)
    throw visitorErrors.badRequest("The request has no Host header, or its Host header is not a host name.");
  const host = (match[1] ?? match[2]!.slice(1, -1)).toLowerCase();
  return { host: host.endsWith(".") ? host.slice(0, -1) : host, authority: authority! };
}
