import { ServerResponse, type IncomingMessage } from "node:http";
import type { CountedResponse, SentHeaders } from "./access-record.ts";

/** A response over HTTP/1.1 that counts its body, for the access log. */
export class CountedServerResponse extends ServerResponse implements CountedResponse {
  declare bodyBytes: number;
  declare headAtMs: number;
  declare sentHeaders: SentHeaders | undefined;

  // Assigned here: the fields of a class cost more, and there is one response for each request.
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

/** The bytes of what `write` and `end` receive: a text, bytes, a callback, or nothing. */
export const chunkBytes = (chunk: unknown, encoding: unknown): number =>
  chunk instanceof Uint8Array
    ? chunk.byteLength
    : typeof chunk === "string"
      ? Buffer.byteLength(chunk, typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8")
      : 0;
