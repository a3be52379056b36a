import {
  constants,
  Http2ServerRequest,
  Http2ServerResponse,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import type { ReadableOptions } from "node:stream";

/** What HTTP/2 has no use for, and forbids. */
const ofConnections: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
]);

/** A request of HTTP/2 as one of HTTP/1.1 would say the same: with a Host, one Cookie, and no pseudo-headers. */
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
    // A body whose length is not said is one in chunks.
    if (!stream.endAfterHeaders && headers["content-length"] === undefined)
      this.headers["transfer-encoding"] = "chunked";
    this.rawHeaders = raw;
  }

  /** Given up by who reads it: the visitor is told to send no more, and keeps the answer. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.stream.close(constants.NGHTTP2_NO_ERROR);
    done(error);
  }
}

/** An answer that is written as one of HTTP/1.1 would be. */
export class VisitorResponse extends Http2ServerResponse<VisitorRequest> {
  override writeHead(status: number, ...rest: unknown[]): this {
    const headers = rest.at(-1);
    const pairs = Array.isArray(headers)
      ? (headers as string[])
      : Object.entries((typeof headers === "object" ? headers : {}) as Record<string, string>).flat();
    const flat: string[] = [];
    for (let i = 0; i < pairs.length; i += 2) {
      if (!ofConnections.has(pairs[i]!.toLowerCase())) flat.push(pairs[i]!, String(pairs[i + 1]));
    }
    return super.writeHead(status, flat as never);
  }
}

Object.defineProperty(VisitorResponse.prototype, "destroyed", {
  get(this: VisitorResponse): boolean {
    return this.stream.destroyed || this.stream.closed;
  },
});
