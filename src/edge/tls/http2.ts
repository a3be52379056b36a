import { validateHeaderName, validateHeaderValue } from "node:http";
import {
  constants,
  Http2ServerRequest,
  Http2ServerResponse,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import type { ReadableOptions } from "node:stream";
import type { CountedResponse, SentHeaders } from "../../platform/access-log/access-record.ts";
import { chunkBytes } from "../../platform/access-log/counted-response.ts";

/** Forbidden in HTTP/2 responses (RFC 9113, 8.2.2). */
const ofConnections: ReadonlySet<string> = new Set([
  "connection",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);

/**
 * An HTTP/2 request with the headers of an equivalent HTTP/1.1 request: with Host, one Cookie, and no
 * pseudo-headers.
 */
export class VisitorRequest extends Http2ServerRequest {
  override readonly headers: IncomingHttpHeaders;
  override readonly rawHeaders: string[];

  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    options: ReadableOptions,
    rawHeaders: readonly string[],
  ) {
    super(stream, headers, options, rawHeaders);
    const raw: string[] = [];
    const cookies: string[] = [];
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const name = rawHeaders[i]!;
      if (name === "cookie") cookies.push(rawHeaders[i + 1]!);
      else if (!name.startsWith(":") && name !== "host") raw.push(name, rawHeaders[i + 1]!);
    }
    if (cookies.length > 0) raw.push("cookie", cookies.join("; "));
    const authority = headers[":authority"] ?? headers.host;
    if (authority !== undefined) raw.unshift("host", authority);
    this.headers = { ...headers, ...(authority === undefined ? {} : { host: authority }) };
    for (const name of Object.keys(headers)) if (name.startsWith(":")) delete this.headers[name];
    // Without a declared length the body counts as chunked.
    if (!stream.endAfterHeaders && headers["content-length"] === undefined)
      this.headers["transfer-encoding"] = "chunked";
    this.rawHeaders = raw;
  }

  /** Destroying the request stops the upload; the response continues. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.stream.close(constants.NGHTTP2_NO_ERROR);
    done(error);
  }
}

/** An HTTP/2 response with the interface of an HTTP/1.1 response. */
export class VisitorResponse extends Http2ServerResponse<VisitorRequest> implements CountedResponse {
  bodyBytes = 0;
  headAtMs = 0;
  sentHeaders: SentHeaders | undefined;
  /** False for 205 (RFC 9110, 15.3.6), where Node ends the stream with the head. */
  #hasBody = true;

  /**
   * Throws before anything is sent when the status or a header is invalid, so that another response is
   * possible.
   */
  override writeHead(status: number, ...rest: unknown[]): this {
    if (!(status >= 200 && status <= 599)) throw new RangeError(`HTTP/2 has no status ${status}`);
    const headers = rest.at(-1);
    const pairs = Array.isArray(headers)
      ? (headers as string[])
      : Object.entries((typeof headers === "object" ? headers : {}) as Record<string, string>).flat();
    const flat: string[] = [];
    for (let i = 0; i < pairs.length; i += 2) {
      const [name, value] = [pairs[i]!, String(pairs[i + 1])];
      const lower = name.toLowerCase();
      if (ofConnections.has(lower) || (status === 205 && lower === "content-length")) continue;
      // Node validates neither here; it joins them with NUL bytes.
      validateHeaderName(name);
      validateHeaderValue(name, value);
      flat.push(name, value);
    }
    this.#hasBody = status !== 205;
    this.headAtMs = performance.now();
    this.sentHeaders = flat;
    return super.writeHead(status, flat as never);
  }

  /** Aborts the response visibly: Node resets with NO_ERROR, which many clients treat as success. */
  override destroy(): this {
    this.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    return this;
  }

  override write(...args: unknown[]): boolean {
    this.#count(args);
    return !this.#hasBody || super.write(...(args as [string]));
  }

  override end(...args: unknown[]): this {
    this.#count(args);
    return this.#hasBody ? super.end(...(args as [string])) : super.end();
  }

  #count([chunk, encoding]: readonly unknown[]): void {
    if (this.#hasBody && this.req.method !== "HEAD") this.bodyBytes += chunkBytes(chunk, encoding);
  }
}

Object.defineProperty(VisitorResponse.prototype, "destroyed", {
  get(this: VisitorResponse): boolean {
    return this.stream.destroyed || this.stream.closed;
  },
});
