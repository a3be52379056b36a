import { ResponseError } from "./exchange.ts";
import { ChunkedDecoder } from "./chunked-decoder.ts";
import { framingOf, headPattern, parseHeaders, type Framing } from "./response-head.ts";

/** The findings of the parser; see `ResponseReceiver`. */
export interface ResponseEvents {
  head(status: number, text: string, headers: string[]): void;
  /** `isOwned`: nothing overwrites the bytes later. */
  data(chunk: Buffer, isOwned: boolean): void;
  end(last: string, trailers: readonly string[]): void;
}

/** Maximum number of interim responses (1xx) before the final one. */
const interimMax = 100;
/** Bytes that are read as text, to find the head and a short body in one step. */
const textBytes = 16 * 1024;

/**
 * Parses the responses of one connection, strictly by RFC 9112: a response that two parsers could read differently is a
 * `ResponseError`. Lines end with CRLF, a length is given once and not together with chunks, and there is no folding.
 */
export class ResponseParser {
  readonly #headBytesMax: number;
  #events: ResponseEvents | undefined;
  #isHead = false;
  #interim = 0;
  /** The bytes of an incomplete head. */
  #text = "";
  #body: Framing | undefined;
  /** Bytes of the body that are still to come, for a known length. */
  #left = 0;
  #chunks: ChunkedDecoder | undefined;
  /** Whether any byte of the current response has arrived. */
  hasBegun = false;
  /** Whether another request may follow: the origin keeps the connection open, and nothing came after its answer. */
  isReusable = true;
  /** Idle time that the origin announced; undefined if it did not. */
  keepAliveMs: number | undefined;

  constructor(headBytesMax: number) {
    this.#headBytesMax = headBytesMax;
  }

  get isIdle(): boolean {
    return this.#events === undefined;
  }

  /** Whether the head of the current response has arrived. */
  get hasHead(): boolean {
    return this.#body !== undefined;
  }

  /** Expects the response to a request. */
  begin(method: string, events: ResponseEvents): void {
    this.#events = events;
    this.#isHead = method === "HEAD";
    this.#interim = 0;
    this.#body = undefined;
    this.hasBegun = false;
  }

  /** Calls no more events. */
  stop(): void {
    this.#events = undefined;
    this.isReusable = false;
  }

  /** Reads the first `length` bytes. `isOwned`: nothing overwrites the bytes later, so parts need no copy. */
  read(bytes: Buffer, length: number, isOwned: boolean): void {
    if (this.#events === undefined) {
      this.isReusable = false; // bytes without a request
      return;
    }
    this.hasBegun = true;
    let at = 0;
    while (at < length && this.#events !== undefined)
      at =
        this.#body === undefined
          ? this.#readHead(bytes, at, length)
          : this.#readBody(bytes, at, length, isOwned);
    if (at < length) this.isReusable = false;
  }

  /** Called when the origin has closed the connection. Throws a `ResponseError` if its response is incomplete. */
  close(): void {
    if (this.#events === undefined) return;
    this.isReusable = false;
    if (this.#body?.kind !== "close")
      throw new ResponseError("the origin closed the connection before the end of its answer");
    this.#end("", []);
  }

  /** Reads the head, and a short body after it. Returns the position of the first unread byte. */
  #readHead(bytes: Buffer, from: number, length: number): number {
    const before = this.#text.length;
    const to = Math.min(length, from + textBytes);
    const text =
      before === 0 ? bytes.toString("latin1", from, to) : this.#text + bytes.toString("latin1", from, to);
    const end = text.indexOf("\r\n\r\n", Math.max(0, before - 3));
    if (end < 0 || end > this.#headBytesMax) {
      if (text.length > this.#headBytesMax) throw new ResponseError("the head of the answer is too large");
      this.#text = text;
      return to;
    }
    this.#text = "";
    this.#parseHead(text.slice(0, end + 2));
    const bodyFrom = from + end + 4 - before;
    // A receiver may have ended the exchange with the head.
    if (this.#events === undefined || this.#body?.kind !== "length" || this.#left > to - bodyFrom)
      return bodyFrom;
    const bodyAt = end + 4;
    const bodyTo = bodyFrom + this.#left;
    this.#end(text.slice(bodyAt, bodyAt + this.#left), []);
    return bodyTo;
  }

  #parseHead(head: string): void {
    if (!headPattern.test(head))
      throw new ResponseError("the head of the answer is not valid HTTP (RFC 9112)");
    const status = Number(head.slice(9, 12));
    const isHttp11 = head.charCodeAt(7) === 0x31;
    if (status < 200) {
      if (!isHttp11) throw new ResponseError("HTTP/1.0 has no interim answers");
      if (status === 101) throw new ResponseError("the origin switched to an unrequested protocol");
      if (++this.#interim > interimMax) throw new ResponseError("the origin sends too many interim answers");
      return;
    }
    const lineEnd = head.indexOf("\r\n");
    const headers = parseHeaders(head, lineEnd + 2);
    const framing = framingOf(status, this.#isHead, isHttp11, headers);
    this.#body = framing;
    this.#left = framing.length;
    this.isReusable &&= framing.isKeptAlive;
    this.keepAliveMs = framing.keepAliveMs;
    this.#chunks = framing.kind === "chunked" ? new ChunkedDecoder(this.#headBytesMax) : undefined;
    this.#events!.head(status, head.slice(13, lineEnd), headers);
  }

  #readBody(bytes: Buffer, from: number, length: number, isOwned: boolean): number {
    const body = this.#body!;
    if (body.kind === "chunked") return this.#readChunks(bytes, from, length, isOwned);
    const to = body.kind === "close" ? length : Math.min(length, from + this.#left);
    if (body.kind === "length") this.#left -= to - from;
    this.#events!.data(bytes.subarray(from, to), isOwned);
    if (body.kind === "length" && this.#left === 0 && this.#events !== undefined) this.#end("", []);
    return to;
  }

  #readChunks(bytes: Buffer, from: number, length: number, isOwned: boolean): number {
    const chunks = this.#chunks!;
    let at = from;
    while (at < length && this.#events !== undefined) {
      at = chunks.read(bytes, at, length);
      if (chunks.dataFrom < at) this.#events.data(bytes.subarray(chunks.dataFrom, at), isOwned);
      if (chunks.trailers !== undefined) {
        if (this.#events !== undefined) this.#end("", chunks.trailers);
        return at;
      }
    }
    return at;
  }

  #end(last: string, trailers: readonly string[]): void {
    const events = this.#events!;
    this.#events = undefined;
    events.end(last, trailers);
  }
}
