import { bytesOf } from "../types.ts";
import type { RequestDescription } from "./request-fields.ts";

/**
 * A request from a file, for trying rules: HTTP text as it goes over the wire, or a JSON object with the properties
 * of {@link RequestDescription}, of which only `url` is needed, and `headers` may be an object.
 * `source` is latin1. Throws an error for the person who wrote the file.
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
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  const [, method, url, httpVersion = "HTTP/1.1"] = match as unknown as [string, string, string, string?];
  return {
    method,
    url,
    headers,
    httpVersion,
    ip,
    tls: !url.startsWith("http://"),
    body: { raw, size: raw.length, truncated: false },
  };
}

function readJson(source: string, ip: string): RequestDescription {
  const text = Buffer.from(source, "latin1").toString("utf8");
  const given = JSON.parse(text) as Partial<Omit<RequestDescription, "headers">> & { headers?: unknown };
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
    url: bytesOf(given.url),
    headers: headerList(given.headers),
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
    return bytesOf(item);
  });
}
