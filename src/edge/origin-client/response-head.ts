import { ResponseError } from "./exchange.ts";

/** How a response's body ends, and whether its connection stays open (RFC 9112, 6.3). */
export interface Framing {
  kind: "length" | "chunked" | "close";
  /** For "length". */
  length: number;
  isKeptAlive: boolean;
  keepAliveMs: number | undefined;
}

/** Status line and fields, each with its CRLF. Every character has one reading, so the time is linear. */
export const headPattern =
  /^HTTP\/1\.[01] [1-9]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?\r\n(?:[!#$%&'*+\-.^_`|~\dA-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*$/;
/** Fields alone: a trailer section. */
export const fieldsPattern = /^(?:[!#$%&'*+\-.^_`|~\dA-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*$/;

/** The names and values of a section that fits `headPattern` or `fieldsPattern`, from `at` on. */
export function parseHeaders(head: string, at: number): string[] {
  const headers: string[] = [];
  while (at < head.length) {
    const colon = head.indexOf(":", at);
    const end = head.indexOf("\r\n", colon);
    let from = colon + 1;
    let to = end;
    while (from < to && isBlank(head.charCodeAt(from))) from++;
    // A tab at the end stays: some parsers count it as a part of the value, so "chunked\t" is refused below.
    while (to > from && head.charCodeAt(to - 1) === 0x20) to--;
    headers.push(head.slice(at, colon), head.slice(from, to));
    at = end + 2;
  }
  return headers;
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09;

/** Reads the framing of a response. Throws a `ResponseError` if it is ambiguous. */
export function framingOf(
  status: number,
  isHead: boolean,
  isHttp11: boolean,
  headers: readonly string[],
): Framing {
  let length: number | undefined;
  let isChunked = false;
  let isClosed = false;
  let isKeptOpen = isHttp11;
  let keepAliveMs: number | undefined;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!;
    // The four names below have these lengths.
    if (name.length !== 14 && name.length !== 10 && name.length !== 17) continue;
    const value = headers[i + 1]!;
    switch (name.toLowerCase()) {
      case "content-length":
        if (length !== undefined) throw new ResponseError("the answer has more than one Content-Length");
        length = lengthOf(value);
        break;
      case "transfer-encoding":
        if (isChunked || !isHttp11 || value.toLowerCase() !== "chunked")
          throw new ResponseError("the only supported Transfer-Encoding of answers is chunked, in HTTP/1.1");
        isChunked = true;
        break;
      case "connection":
        if (value === "keep-alive") isKeptOpen = true;
        else {
          const tokens = value
            .toLowerCase()
            .split(",")
            .map((token) => token.trim());
          isClosed ||= tokens.includes("close");
          isKeptOpen ||= tokens.includes("keep-alive");
        }
        break;
      case "keep-alive":
        keepAliveMs = announcedMs(value) ?? keepAliveMs;
        break;
    }
  }
  if (isChunked && length !== undefined)
    throw new ResponseError("the answer has a Content-Length and chunks");
  const shared = { isKeptAlive: isKeptOpen && !isClosed, keepAliveMs };
  if (isHead || status === 204 || status === 304) return { kind: "length", length: 0, ...shared };
  if (isChunked) return { kind: "chunked", length: 0, ...shared };
  if (length !== undefined) return { kind: "length", length, ...shared };
  return { kind: "close", length: 0, ...shared, isKeptAlive: false };
}

function lengthOf(value: string): number {
  const length = /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(length))
    throw new ResponseError("the answer's Content-Length is not a number of bytes");
  return length;
}

/** `timeout=5` of a Keep-Alive header. */
function announcedMs(value: string): number | undefined {
  const seconds = /(?:^|[,\s])timeout=(\d{1,6})(?=$|[,\s])/i.exec(value)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}
