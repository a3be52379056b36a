import type { ClientRequest } from "./exchange.ts";

const token = /^[!#$%&'*+\-.^_`|~\dA-Za-z]+$/;
const target = /^\/[\x21-\x7e\x80-\xff]*$/;
const value = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Names that `requestHead` has seen and checked; there are few of them. */
const names = new Set<string>();
const namesMax = 1000;

/** Methods whose requests may have a body, and then say that it is empty (RFC 9110, 8.6). */
const withoutContent: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "CONNECT"]);

/** Headers of the connection, which is the client's. */
const ofConnection: ReadonlySet<string> = new Set([
  "connection",
  "transfer-encoding",
  "keep-alive",
  "upgrade",
  "expect",
]);

/** A request's head as it is sent, and how its body is sent. */
export interface RequestHead {
  text: string;
  /** Bytes of the body; undefined: in chunks. */
  length: number | undefined;
}

/**
 * Writes the head of a request, in Latin-1. Throws when a part of it could be read as more than one field or request: a
 * line break, a second length, a header of the connection.
 */
export function requestHead({ method, path, headers, body }: ClientRequest): RequestHead {
  if (!token.test(method) || method === "CONNECT") throw invalid("method", method);
  if (!target.test(path)) throw invalid("path", path);
  let text = `${method} ${path} HTTP/1.1\r\n`;
  let length: number | undefined;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!;
    const field = headers[i + 1]!;
    if (!value.test(field) || (!names.has(name) && !isName(name))) throw invalid("header", name);
    if (name.length === 14 && name.toLowerCase() === "content-length") {
      if (length !== undefined || !/^\d{1,15}$/.test(field)) throw invalid("header", name);
      length = Number(field);
    } else text += `${name}: ${field}\r\n`;
  }
  return withFraming(text, length, body !== null, withoutContent.has(method));
}

function withFraming(
  text: string,
  length: number | undefined,
  hasBody: boolean,
  mayOmit: boolean,
): RequestHead {
  if (!hasBody && (length ?? 0) > 0)
    throw new TypeError("Expected a body, because the request has a Content-Length");
  if (hasBody && length === undefined)
    return { text: `${text}transfer-encoding: chunked\r\nconnection: keep-alive\r\n\r\n`, length };
  const bytes = length ?? 0;
  const framing = bytes === 0 && mayOmit ? "" : `content-length: ${bytes}\r\n`;
  return { text: `${text}${framing}connection: keep-alive\r\n\r\n`, length: bytes };
}

/** Whether a name is valid, and no header of the connection. */
function isName(name: string): boolean {
  if (!token.test(name) || ofConnection.has(name.toLowerCase())) return false;
  if (names.size < namesMax) names.add(name);
  return true;
}

const invalid = (what: string, text: string): TypeError =>
  new TypeError(`Expected a valid ${what} but received ${JSON.stringify(text.slice(0, 100))}`);
