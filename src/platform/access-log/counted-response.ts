import { ServerResponse, type IncomingMessage } from "node:http";
import type { CountedResponse, SentHeaders } from "./access-record.ts";

/** A response over HTTP/1.1 that counts its body, for the access log. */
export class CountedServerResponse extends ServerResponse implements CountedResponse {
  declare bodyBytes: number;
  declare headAtMs: number;
  declare sentHeaders: SentHeaders | undefined;

  // Assigned here, because class fields cost more, and every request has a response.
  constructor(request: IncomingMessage) {
    super(request);
    this.bodyBytes = 0;
    this.headAtMs = 0;
    this.sentHeaders = undefined;
  }

  override writeHead(status: number, reason?: unknown, headers?: unknown): this {
    this.headAtMs = performance.now();
    const last = headers ?? reason;
    if (typeof last === "object" && last !== null) this.sentHeaders = last as SentHeaders;
    return super.writeHead(status, reason as string, headers as string[]);
  }

  override write(chunk: unknown, encoding?: unknown, done?: unknown): boolean {
    if (this.req.method !== "HEAD") this.bodyBytes += chunkBytes(chunk, encoding);
    return super.write(chunk, encoding as BufferEncoding, done as () => void);
  }

  override end(chunk?: unknown, encoding?: unknown, done?: unknown): this {
    if (this.req.method !== "HEAD") this.bodyBytes += chunkBytes(chunk, encoding);
    return super.end(chunk as string, encoding as BufferEncoding, done as () => void);
  }
}

/** Node's server passes options, too. */
const PlainResponse = ServerResponse as new (request: IncomingMessage, options?: object) => ServerResponse;

/** The class of a server's responses, which count their bodies while the log is on. */
export function responseClass(log: { readonly isOn: boolean } | undefined): typeof ServerResponse {
  if (log === undefined) return ServerResponse;
  // The constructor returns an object of another class, because the log may be turned on while the server runs.
  return function (request: IncomingMessage, options: object): ServerResponse {
    return log.isOn ? new CountedServerResponse(request) : new PlainResponse(request, options);
  } as unknown as typeof ServerResponse;
}

/** The bytes of what `write` and `end` receive: a text, bytes, a callback, or nothing. */
export const chunkBytes = (chunk: unknown, encoding: unknown): number =>
  chunk instanceof Uint8Array
    ? chunk.byteLength
    : typeof chunk === "string"
      ? Buffer.byteLength(chunk, typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8")
      : 0;
