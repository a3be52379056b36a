import { encodeUtf8 } from "../values/types.ts";
import type { RequestDescription } from "./request-fields.ts";

/**
 * Parses a request file, for trying rules: HTTP text, or a JSON object with the properties of {@link
 * RequestDescription}. Only `url` is required, and `headers` may be an object. `source` is latin1. Throws an
 * error with a message for the file's author.
 */
export function readRequest(source: string, ip = "192.0.2.1"): RequestDescription {
  return source.trimStart().startsWith("{") ? readJson(source, ip) : readHttp(source, ip);
}

function readHttp(source: string, ip: string): RequestDescription {
  const separator = /\r?\n\r?\n/.exec(source);
  const head = separator === null ? source.trimEnd() : source.slice(0, separator.index);
  const raw = separator === null ? "" : source.slice(separator.index + separator[0].length);
  const [requestLine = "", ...lines] = head.split(/\r?\n/);
  const match = /^([A-Z]+) (\S+)(?: (HTTP\/[\d.]+))?$/.exec(requestLine);
  if (match === null) {
    throw new Error(
      `Expected a request line like "GET /path HTTP/1.1" but received ${JSON.stringify(requestLine)}`,
    );
  }
  const headers = lines.flatMap((line) => {
    const colon = line.indexOf(":");
    if (colon < 1)
      throw new Error(`Expected a header like "name: value" but received ${JSON.stringify(line)}`);
    return [line.slice(0, colon), line.slice(colon + 1).replace(/^[ \t]+|(?<![ \t])[ \t]+$/g, "")];
  });
  const [, method, url, httpVersion = "HTTP/1.1"] = match as unknown as [string, string, string, string?];
  return {
    method,
    url,
    headers,
    httpVersion,
    ip,
    tls: !url.startsWith("http://"),
    body: bodyPrefix(raw),
  };
}

/** Bytes of a body that rules can see, in the public service and here on the default plan. */
export const bodyPrefixBytes = 128 * 1024;

const bodyPrefix = (raw: string): NonNullable<RequestDescription["body"]> => ({
  raw: raw.slice(0, bodyPrefixBytes),
  size: raw.length,
  truncated: raw.length > bodyPrefixBytes,
});

function readJson(source: string, ip: string): RequestDescription {
  const text = Buffer.from(source, "latin1").toString("utf8");
  const given = JSON.parse(text) as Partial<Omit<RequestDescription, "headers" | "body">> & {
    headers?: unknown;
    body?: unknown;
  };
  if (typeof given.url !== "string")
    throw new Error(`Expected a string for url but received ${JSON.stringify(given.url)}`);
  const isAbsolute = /^https?:\/\//.test(given.url);
  const host = isAbsolute ? new URL(given.url).hostname : undefined;
  return {
    method: "GET",
    httpVersion: "HTTP/1.1",
    tls: !given.url.startsWith("http://"),
    ip,
    ...(host === undefined ? {} : { host }),
    ...given,
    url: encodeUtf8(given.url),
    headers: headerList(given.headers),
    body: readBody(given.body),
  };
}

/** A text is the whole body. An object states its size and whether it is truncated. */
function readBody(body: unknown): RequestDescription["body"] {
  if (body === undefined) return undefined;
  if (typeof body === "string") return bodyPrefix(encodeUtf8(body));
  const { raw, size, truncated = false } = (body ?? {}) as Record<string, unknown>;
  if (typeof raw !== "string" || typeof truncated !== "boolean")
    throw new Error(
      `Expected a text, or an object with raw, size and truncated, for body but received ${JSON.stringify(body)}`,
    );
  const bytes = encodeUtf8(raw);
  return {
    ...bodyPrefix(bytes),
    ...(typeof size === "number" ? { size } : {}),
    ...(truncated ? { truncated } : {}),
  };
}

function headerList(headers: unknown): string[] {
  if (headers === undefined) return [];
  const list: unknown[] = Array.isArray(headers)
    ? headers.flat()
    : Object.entries(headers as Record<string, unknown>).flatMap(([name, value]) =>
        (Array.isArray(value) ? value : [value]).flatMap((item: unknown) => [name, item]),
      );
  return list.map((item) => {
    if (typeof item !== "string")
      throw new Error(`Expected strings for headers but received ${JSON.stringify(item)}`);
    return encodeUtf8(item);
  });
}
