import { isConsoleCookie } from "./console-cookies.ts";
import { visitorErrors } from "./errors.ts";
import { viaName } from "./via.ts";

/** Headers that belong to one connection (RFC 9110, section 7.6.1), in lower case. */
export const hopByHop: ReadonlySet<string> = new Set([
  "connection",
  "expect",
  "http2-settings",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
/** Headers that only the edge sets; a visitor's own copies are dropped. */
const ours: ReadonlySet<string> = new Set([
  "cf-connecting-ip",
  "cf-connecting-ipv6",
  "cf-ipcountry",
  "cf-ray",
  "cf-visitor",
  "cf-worker",
  "selvedge-cf",
  "true-client-ip",
  "x-forwarded-proto",
  viaName,
]);
const cdnName = "selvedge";
/** Headers between the edge and its cells; dropped from all other senders. */
const isInternal = (name: string): boolean => name.startsWith("x-selvedge-");

/** The parts of a visitor's or a script's request from which the headers for the next hop are made. */
export interface ForwardedRequest {
  rawHeaders: readonly string[];
  host: string;
  /** The address of the connection, when it is a trusted proxy and not the client. */
  peerAddress?: string;
  clientAddress: string;
  scheme: "http" | "https";
  ray: string;
  /** For a script's request to an origin: the header with the hop count. */
  via?: string | undefined;
}

/** The headers for the origin, as a flat list of names and values. */
export const originHeaders = (request: ForwardedRequest): string[] => passedOn(request, true);

/**
 * The headers for a script. Hop lists (such as X-Forwarded-For) are extended later, on the way to the origin.
 */
export const scriptHeaders = (request: ForwardedRequest): string[] => passedOn(request, false);

function passedOn(request: ForwardedRequest, isHop: boolean): string[] {
  const { rawHeaders } = request;
  const headers: string[] = ["host", request.host];
  let named: Set<string> | undefined;
  let forwardedFor = "";
  let cdnLoop = "";
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i]!;
    const name = raw.toLowerCase();
    const value = rawHeaders[i + 1]!;
    if (name === "connection") named = namedBy(value, named);
    if (name === "host" || hopByHop.has(name) || ours.has(name) || isLookAlike(name) || isInternal(name))
      continue;
    if (name === "x-forwarded-for") forwardedFor += `${value}, `;
    else if (name === "cdn-loop") cdnLoop += `${value}, `;
    else headers.push(raw, value);
  }
  // Before the edge adds its own headers: a Connection header must not remove those.
  if (named !== undefined) removeNamed(headers, named);
  if (cdnLoop !== "" && listOf(cdnLoop).some((token) => token.split(";")[0]!.trim() === cdnName))
    throw visitorErrors.loop();
  if (isHop) headers.push("x-forwarded-for", forwardedFor + (request.peerAddress ?? request.clientAddress));
  else if (forwardedFor !== "") headers.push("x-forwarded-for", forwardedFor.slice(0, -2));
  headers.push(
    "x-forwarded-proto",
    request.scheme,
    "cf-connecting-ip",
    request.clientAddress,
    "cf-ray",
    request.ray,
    "cf-visitor",
    request.scheme === "https" ? '{"scheme":"https"}' : '{"scheme":"http"}',
  );
  if (request.via !== undefined) headers.push(viaName, request.via);
  if (isHop) headers.push("cdn-loop", cdnLoop + cdnName);
  else if (cdnLoop !== "") headers.push("cdn-loop", cdnLoop.slice(0, -2));
  return headers;
}

/** The headers of a script's own request, unchanged. */
export function externalHeaders(rawHeaders: readonly string[], host: string): string[] {
  const headers: string[] = ["host", host];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    if (name !== "host" && name !== viaName && !hopByHop.has(name) && !isInternal(name))
      headers.push(rawHeaders[i]!, rawHeaders[i + 1]!);
  }
  return headers;
}

/**
 * The headers of a script's request to the outside, without those that only the edge sets: an origin that
 * trusts the edge's address could otherwise mistake any account's script for the edge. The script may pass on
 * `clientAddress`, the address of its visitor.
 */
export const outboundHeaders = (
  rawHeaders: readonly string[],
  host: string,
  clientAddress: string | undefined,
): string[] => {
  const headers = externalHeaders(rawHeaders, host);
  return headers.filter((_, i) => {
    const at = i - (i % 2);
    const name = headers[at]!.toLowerCase();
    if (name === "x-forwarded-proto") return true;
    if (name === "cf-connecting-ip") return headers[at + 1] === clientAddress;
    return !ours.has(name) && !isLookAlike(name);
  });
};

/** The headers that a Connection header declares hop-by-hop, added to those of an earlier one; usually none. */
function namedBy(connection: string, earlier: Set<string> | undefined): Set<string> | undefined {
  if (connection === "keep-alive" || connection === "close") return earlier;
  return new Set([...(earlier ?? []), ...listOf(connection)]);
}

/** Removes headers from a list of names and values, but not those that say where the message goes or ends. */
function removeNamed(headers: string[], named: ReadonlySet<string>): void {
  let kept = 0;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!.toLowerCase();
    if (named.has(name) && name !== "content-length" && name !== "host") continue;
    headers[kept++] = headers[i]!;
    headers[kept++] = headers[i + 1]!;
  }
  headers.length = kept;
}

/**
 * Many servers read "cf_connecting_ip" as "cf-connecting-ip", so such spellings of the edge's headers are
 * dropped.
 */
function isLookAlike(name: string): boolean {
  if (!name.includes("_")) return false;
  const spelled = name.replaceAll("_", "-");
  return ours.has(spelled) || spelled === "x-forwarded-for" || spelled === "cdn-loop";
}

/**
 * The origin's headers without hop-by-hop headers, as a flat list. 1xx and 204 have no Content-Length (RFC
 * 9110, 8.6): a client that honours one would take the next response for the body.
 */
export function visitorHeaders(rawHeaders: readonly string[], ray: string, status = 200): string[] {
  const headers: string[] = [];
  let named: Set<string> | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    if (name === "connection") named = namedBy(rawHeaders[i + 1]!, named);
    if (hopByHop.has(name) || (name === "cf-ray" && ray !== "") || isInternal(name)) continue;
    if ((status < 200 || status === 204) && name === "content-length") continue;
    if (name === "set-cookie" && isConsoleCookie(rawHeaders[i + 1]!)) continue;
    headers.push(rawHeaders[i]!, rawHeaders[i + 1]!);
  }
  if (named !== undefined) removeNamed(headers, named);
  if (ray !== "") headers.push("cf-ray", ray);
  return headers;
}

/**
 * Fields that must precede the body: framing, routing, authentication, control and content format (RFC 9110,
 * 6.5.1).
 */
const notInTrailers: ReadonlySet<string> = new Set([
  "age",
  "authorization",
  "cache-control",
  "cf-ray",
  "content-encoding",
  "content-length",
  "content-range",
  "content-type",
  "date",
  "expires",
  "host",
  "location",
  "max-forwards",
  "pragma",
  "range",
  "retry-after",
  "set-cookie",
  "vary",
  "warning",
  "www-authenticate",
]);
const isHeaderValue = (value: string): boolean => /^[\t\x20-\x7e\x80-\xff]*$/.test(value);

/** The origin's trailers, names and values in turn, without fields that are forbidden or invalid there; undefined when none is left. */
export function visitorTrailers(trailers: readonly string[]): Record<string, string[]> | undefined {
  let kept: Record<string, string[]> | undefined;
  for (let i = 0; i < trailers.length; i += 2) {
    const name = trailers[i]!.toLowerCase();
    const value = trailers[i + 1]!;
    if (hopByHop.has(name) || notInTrailers.has(name) || isInternal(name) || !isHeaderValue(value)) continue;
    kept ??= Object.create(null) as Record<string, string[]>;
    (kept[name] ??= []).push(value);
  }
  return kept;
}

const listOf = (value: string): string[] =>
  value
    .toLowerCase()
    .split(",")
    .map((token) => token.trim())
    .filter((token) => token !== "");
