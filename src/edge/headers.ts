import { visitorErrors } from "./errors.ts";

const hopByHop: ReadonlySet<string> = new Set([
  "connection",
  "expect",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
/** What only the edge may say: a visitor's own copies are dropped. */
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
]);
const cdnName = "selvedge";
/** Said between the edge and its cells only: whoever else says it is not heard. */
const isInternal = (name: string): boolean => name.startsWith("x-selvedge-");

export interface ForwardedRequest {
  rawHeaders: readonly string[];
  host: string;
  /** Who made the connection, where that is not the client but a trusted proxy. */
  peerAddress?: string;
  clientAddress: string;
  scheme: "http" | "https";
  ray: string;
}

/** The headers that go to the origin, as a flat list of names and values. */
export const originHeaders = (request: ForwardedRequest): string[] => passedOn(request, true);

/** The headers that a script sees. What the edge adds to lists of hops it adds later, on the way to the origin. */
export const scriptHeaders = (request: ForwardedRequest): string[] => passedOn(request, false);

function passedOn(request: ForwardedRequest, isHop: boolean): string[] {
  const { rawHeaders } = request;
  const headers: string[] = ["host", request.host];
  const named = namedByConnection(rawHeaders);
  let forwardedFor = "";
  let cdnLoop = "";
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i]!;
    const name = raw.toLowerCase();
    const value = rawHeaders[i + 1]!;
    if (name === "host" || hopByHop.has(name) || ours.has(name) || isLookAlike(name) || isInternal(name))
      continue;
    if (name === "x-forwarded-for") forwardedFor += `${value}, `;
    else if (name === "cdn-loop") cdnLoop += `${value}, `;
    // A Connection header must not take away what the edge relies on, nor the body's length.
    else if (named?.has(name) !== true || name === "content-length") headers.push(raw, value);
  }
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
  if (isHop) headers.push("cdn-loop", cdnLoop + cdnName);
  else if (cdnLoop !== "") headers.push("cdn-loop", cdnLoop.slice(0, -2));
  return headers;
}

/** The headers of a script's own request to the outside: as it made them. */
export function externalHeaders(rawHeaders: readonly string[], host: string): string[] {
  const headers: string[] = ["host", host];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    if (name !== "host" && !hopByHop.has(name) && !isInternal(name))
      headers.push(rawHeaders[i]!, rawHeaders[i + 1]!);
  }
  return headers;
}

/** The headers that are for this connection only because a Connection header says so; mostly there are none. */
function namedByConnection(rawHeaders: readonly string[]): Set<string> | undefined {
  let named: Set<string> | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.length !== 10 || rawHeaders[i]!.toLowerCase() !== "connection") continue;
    const value = rawHeaders[i + 1]!;
    if (value !== "keep-alive" && value !== "close") named = new Set([...(named ?? []), ...listOf(value)]);
  }
  return named;
}

/** Many origins read "cf_connecting_ip" as "cf-connecting-ip": such a spelling of what only the edge says is dropped. */
function isLookAlike(name: string): boolean {
  if (!name.includes("_")) return false;
  const spelled = name.replaceAll("_", "-");
  return ours.has(spelled) || spelled === "x-forwarded-for" || spelled === "cdn-loop";
}

/**
 * The origin's headers without those that are between it and the edge only, as a flat list. A 1xx and a 204 have no
 * length (RFC 9110, 8.6): whoever believed one would take what follows for their body.
 */
export function visitorHeaders(rawHeaders: readonly string[], ray: string, status = 200): string[] {
  const headers: string[] = [];
  const named = namedByConnection(rawHeaders);
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    if (hopByHop.has(name) || (name === "cf-ray" && ray !== "") || isInternal(name)) continue;
    if ((status < 200 || status === 204) && name === "content-length") continue;
    if (named?.has(name) === true && name !== "content-length") continue;
    headers.push(rawHeaders[i]!, rawHeaders[i + 1]!);
  }
  if (ray !== "") headers.push("cf-ray", ray);
  return headers;
}

const listOf = (value: string): string[] =>
  value
    .toLowerCase()
    .split(",")
    .map((token) => token.trim())
    .filter((token) => token !== "");
