/** The fields of a response, as `writeHead` takes them: an object, or names and values in turn. */
export type Fields = Readonly<Record<string, unknown>> | readonly unknown[];

/** The properties of a response that decide how its body is framed. */
export interface ResponseParts {
  status: number;
  statusText: string;
  isHttp11: boolean;
  /** False for HEAD, and for statuses without a body. */
  hasBody: boolean;
  /** Whether the connection may stay open. */
  isKeptAlive: boolean;
  keepAliveSeconds: number;
  /** The length of the body if the whole body is known; used if the fields have no length. */
  length: number | undefined;
}

/** A written head. */
export interface ResponseHead {
  /** In Latin-1. */
  text: string;
  /** Bytes of the body; undefined: unknown. */
  length: number | undefined;
  isChunked: boolean;
  /** Whether the connection closes after the response. */
  isLast: boolean;
}

const token = /^[!#$%&'*+\-.^_`|~\dA-Za-z]+$/;
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Names that were seen and checked; there are few of them. */
const names = new Set<string>();
const namesMax = 1000;

/**
 * Writes the head of a response, and decides the framing of its body (RFC 9112, 6). Throws when a part of it could be read
 * as more than one field or response.
 */
export function responseHead(parts: ResponseParts, fields: readonly unknown[]): ResponseHead {
  const { status, statusText, isHttp11, hasBody } = parts;
  if (!Number.isInteger(status) || status < 100 || status > 999)
    throw new RangeError(`Expected a status from 100 to 999 but received ${status}`);
  if (!fieldValue.test(statusText)) throw invalid("status text", statusText);
  let text = `HTTP/1.1 ${status} ${statusText}\r\n`;
  let length: number | undefined;
  let connection: string | undefined;
  let isChunked = false;
  let hasDate = false;
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i];
    const value = fieldText(fields[i + 1]);
    if (!isName(name)) throw invalid("header", name);
    if (!fieldValue.test(value)) throw invalid("header", name);
    switch (name.length) {
      case 4:
        hasDate ||= name.toLowerCase() === "date";
        break;
      case 10:
        if (name.toLowerCase() === "connection")
          connection = connection === undefined ? value : `${connection},${value}`;
        break;
      case 14:
        if (name.toLowerCase() !== "content-length") break;
        if (length !== undefined || !/^\d{1,15}$/.test(value)) throw invalid("header", name);
        length = Number(value);
        break;
      case 17:
        if (name.toLowerCase() !== "transfer-encoding") break;
        if (value.toLowerCase() !== "chunked") throw invalid("header", name);
        isChunked = true;
        continue; // written below, if the body has chunks
    }
    text += `${name}: ${value}\r\n`;
  }
  if (!hasDate) text += `Date: ${dateNow()}\r\n`;
  let framing = "";
  const isUnframed = length === undefined && hasBody;
  // The known length of the whole body is better than chunks.
  if (isUnframed && !isChunked && parts.length !== undefined) {
    length = parts.length;
    framing = `Content-Length: ${length}\r\n`;
  }
  isChunked = hasBody && length === undefined && isHttp11;
  const endsByClosing = hasBody && length === undefined && !isHttp11;
  let isLast = !parts.isKeptAlive || endsByClosing;
  if (connection === undefined)
    text += isLast
      ? "Connection: close\r\n"
      : `Connection: keep-alive\r\nKeep-Alive: timeout=${parts.keepAliveSeconds}\r\n`;
  else isLast ||= /(?:^|[,\s])close(?:$|[,\s])/i.test(connection);
  if (isChunked) framing = "Transfer-Encoding: chunked\r\n";
  return { text: `${text}${framing}\r\n`, length: hasBody ? length : 0, isChunked, isLast };
}

/** The fields as names and values in turn. A field with several values is repeated. */
export function flatFields(fields: Fields | undefined): readonly unknown[] {
  if (fields === undefined) return [];
  if (Array.isArray(fields)) {
    if (fields.length % 2 !== 0) throw new TypeError("Expected names and values of headers in turn");
    return fields as readonly unknown[];
  }
  return Object.entries(fields).flatMap(([name, value]) =>
    Array.isArray(value) ? value.flatMap((each: unknown) => [name, each]) : [name, value],
  );
}

function fieldText(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  throw new TypeError(`Expected a text as the value of a header but received ${typeof value}`);
}

function isName(name: unknown): name is string {
  if (typeof name !== "string") return false;
  if (names.has(name)) return true;
  if (!token.test(name)) return false;
  if (names.size < namesMax) names.add(name);
  return true;
}

const invalid = (what: string, text: unknown): TypeError =>
  new TypeError(`Expected a valid ${what} but received ${JSON.stringify(String(text).slice(0, 100))}`);

let dateSecond = 0;
let date = "";

/** The current time for the Date field, made once in a second. */
function dateNow(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    date = new Date(second * 1000).toUTCString();
  }
  return date;
}
