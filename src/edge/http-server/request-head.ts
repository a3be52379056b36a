import { METHODS } from "node:http";
import { parseHeaders } from "../origin-client/response-head.ts";
import { malformed } from "./errors.ts";

/** The head of a request. */
export interface ParsedHead {
  method: string;
  target: string;
  httpVersion: "1.0" | "1.1";
  /** Names and values in turn. */
  headers: string[];
  /** Bytes of the body; undefined: it comes in chunks. */
  length: number | undefined;
  isKeptAlive: boolean;
  /** Whether it asks for another protocol on this connection. */
  isUpgrade: boolean;
  /** The value of Expect, in lower case. */
  expect: string | undefined;
}

const methods: ReadonlySet<string> = new Set(METHODS);

/** Request line and fields, each with its CRLF. Every character has one reading, so the time is linear. */
const headPattern =
  /^[A-Z-]+ [\x21-\x7e]+ HTTP\/1\.[01]\r\n(?:[!#$%&'*+\-.^_`|~\dA-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*$/;
const targetPattern = /^(?:\/|\*$|[A-Za-z]+:\/\/)/;
/** The beginning of a head, until its end has arrived. */
const partPattern = /^(?:[\t\x20-\x7e\x80-\xff]|\r\n)*\r?$/;
const methodPattern = /^[A-Z-]{1,20}(?: |$)/;
const methodCharactersMax = 20;

/**
 * Whether bytes can be the beginning of a head, so that other bytes are refused before their sender stops. `from` is the
 * number of characters that were looked at before.
 */
export function mayBegin(text: string, from: number): boolean {
  const hasHalfLineEnd = from > 0 && text[from - 1] === "\r";
  const unseen = text.slice(hasHalfLineEnd ? from - 1 : from);
  return partPattern.test(unseen) && (from > methodCharactersMax || methodPattern.test(text));
}

/** Parses a head, strictly by RFC 9112. `text` is Latin-1, and ends with the CRLF of the last field. */
export function parseRequestHead(text: string): ParsedHead {
  if (!headPattern.test(text)) throw malformed();
  const lineEnd = text.indexOf("\r\n");
  const methodEnd = text.indexOf(" ");
  const targetEnd = text.indexOf(" ", methodEnd + 1);
  const method = text.slice(0, methodEnd);
  if (!methods.has(method)) throw malformed("the method of the request is unknown");
  const target = text.slice(methodEnd + 1, targetEnd);
  if (method !== "CONNECT" && !targetPattern.test(target))
    throw malformed("the target of the request is neither a path nor a URL");
  const isHttp11 = text.charCodeAt(lineEnd - 1) === 0x31;
  const headers = parseHeaders(text, lineEnd + 2);
  const head: ParsedHead = {
    method,
    target,
    httpVersion: isHttp11 ? "1.1" : "1.0",
    headers,
    length: 0,
    isKeptAlive: isHttp11,
    isUpgrade: false,
    expect: undefined,
  };
  readFields(head, isHttp11);
  return head;
}

/** Reads the fields of the connection and of the body's framing. An ambiguous framing is refused. */
function readFields(head: ParsedHead, isHttp11: boolean): void {
  const { headers } = head;
  let length: number | undefined;
  let isChunked = false;
  let connection = "";
  let upgrade = false;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!;
    const value = headers[i + 1]!;
    // Blanks around a value are no part of it, but a tab behind a framing is one that other parsers may read otherwise.
    if (value.charCodeAt(value.length - 1) === 0x09) headers[i + 1] = withoutBlanks(value);
    // The fields below have names of these lengths.
    const { length: size } = name;
    if (size !== 10 && size !== 14 && size !== 17 && size !== 6 && size !== 7) continue;
    switch (name.toLowerCase()) {
      case "content-length":
        if (length !== undefined || !/^\d{1,15}$/.test(value))
          throw malformed("the length of the request is not one number");
        length = Number(value);
        break;
      case "transfer-encoding":
        if (isChunked || !isHttp11 || value.toLowerCase() !== "chunked")
          throw malformed("the only supported Transfer-Encoding is chunked, in HTTP/1.1");
        isChunked = true;
        break;
      case "connection":
        connection = connection === "" ? value : `${connection},${value}`;
        break;
      case "upgrade":
        upgrade = true;
        break;
      case "expect":
        head.expect = value.toLowerCase();
        break;
    }
  }
  if (isChunked && length !== undefined) throw malformed("the request has a length and chunks");
  head.length = isChunked ? undefined : (length ?? 0);
  if (connection === "") return;
  const options = connection
    .toLowerCase()
    .split(",")
    .map((option) => option.trim());
  head.isKeptAlive = !options.includes("close") && (isHttp11 || options.includes("keep-alive"));
  head.isUpgrade = upgrade && options.includes("upgrade");
}

/** Without blanks at its end. A pattern would take quadratic time for blanks inside of the value. */
function withoutBlanks(value: string): string {
  let to = value.length;
  while (to > 0 && (value.charCodeAt(to - 1) === 0x09 || value.charCodeAt(to - 1) === 0x20)) to--;
  return value.slice(0, to);
}
