import { ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { CountedResponse, SentHeaders } from "../../platform/access-log/access-record.ts";
import { copyOf } from "./copies.ts";
import type { Http1Request } from "./request.ts";
import { flatFields, responseHead, type Fields } from "./response-head.ts";

/** The connection of a response. */
export interface ResponseSink {
  readonly socket: Socket;
  /** Whether the connection may stay open after the response. */
  readonly isKeptAlive: boolean;
  readonly keepAliveSeconds: number;
  /** Called with each write. */
  writes(): void;
  /** Called once the whole response was handed to the system. */
  sent(response: Http1Response): void;
}

type Done = ((error?: Error | null) => void) | undefined;

/** Bodies up to this size are copied into the text of the head, because two writes cost more. */
const joinedBytesMax = 4096;
/** Statuses whose responses have no body (RFC 9110, 6.4.1). */
const isWithoutBody = (status: number): boolean => status < 200 || status === 204 || status === 304;

/**
 * A response with the interface of those of node:http, which writes to the socket itself. A body that does not have its
 * announced length ends the connection.
 */
export class Http1Response extends ServerResponse<Http1Request> implements CountedResponse {
  declare bodyBytes: number;
  declare headAtMs: number;
  declare sentHeaders: SentHeaders | undefined;
  /** node:http's own mark of a response that has been ended. */
  declare finished: boolean;
  /** node:http's own mark of a response with a head. */
  declare _header: string | null;
  /** Whether the connection closes after this response. */
  declare isLast: boolean;
  /** Whether the socket's buffer is full. */
  declare isFull: boolean;
  /** Whether the system has the whole response. */
  declare isSent: boolean;
  readonly #sink: ResponseSink;
  /** The head until it is written with the first bytes of the body. */
  #head = "";
  #hasBody: boolean;
  #isChunked = false;
  /** Bytes of the body that are still to come; Infinity if they are not known. */
  #left = Infinity;

  constructor(request: Http1Request, sink: ResponseSink) {
    super(request);
    this.bodyBytes = 0;
    this.headAtMs = 0;
    this.sentHeaders = undefined;
    this.isLast = false;
    this.isFull = false;
    this.isSent = false;
    this.shouldKeepAlive = true; // also over HTTP/1.0, if the visitor asks for it
    this.#sink = sink;
    this.#hasBody = request.method !== "HEAD";
    (this as { socket: Socket | null }).socket = sink.socket;
  }

  /** Whether all of the announced body is written, so that only `end` is missing. */
  get isWhole(): boolean {
    return this.headersSent && this.#left === 0;
  }

  override writeHead(status: number, reason?: unknown, fields?: unknown): this {
    const text = typeof reason === "string" ? reason : (STATUS_CODES[status] ?? "unknown");
    this.#writeHead(status, text, (typeof reason === "string" ? fields : (fields ?? reason)) as Fields);
    return this;
  }

  #writeHead(status: number, text: string, given: Fields | undefined, length?: number): void {
    if (this.headersSent) throw new Error("Expected one head of a response");
    const hasBody = this.#hasBody && !isWithoutBody(status);
    const head = responseHead(
      {
        status,
        statusText: text,
        isHttp11: this.req.httpVersionMinor === 1,
        hasBody,
        isKeptAlive: this.shouldKeepAlive && this.#sink.isKeptAlive,
        keepAliveSeconds: this.#sink.keepAliveSeconds,
        length,
      },
      this.#withSet(flatFields(given)),
    );
    this.statusCode = status;
    this.statusMessage = text;
    this.headAtMs = performance.now();
    this.sentHeaders = given;
    this._header = head.text;
    this.#head = head.text;
    this.#hasBody = hasBody;
    this.#isChunked = head.isChunked;
    this.#left = head.length ?? Infinity;
    this.isLast = head.isLast;
  }

  /** With the fields of `setHeader`, unless they are given now. */
  #withSet(given: readonly unknown[]): readonly unknown[] {
    const set = this.getHeaderNames();
    if (set.length === 0) return given;
    const now = new Set(given.map((name, i) => (i % 2 === 0 ? String(name).toLowerCase() : "")));
    const kept = set.filter((name) => !now.has(name));
    return [...flatFields(Object.fromEntries(kept.map((name) => [name, this.getHeader(name)]))), ...given];
  }

  override write(chunk: unknown, encoding?: unknown, callback?: unknown): boolean {
    const done = (typeof encoding === "function" ? encoding : callback) as Done;
    if (!this.#isWritable(done)) return false;
    if (!this.headersSent) this.#writeHead(this.statusCode, this.#statusText(), undefined);
    const data = bytesOf(chunk, encoding);
    if (data.length === 0) {
      if (done !== undefined) process.nextTick(done);
      return !this.isFull;
    }
    return this.#send(data, false, done);
  }

  /** Writes bytes that may be overwritten later. */
  writeCopy(chunk: Buffer): boolean {
    if (chunk.length <= joinedBytesMax && (this.#head !== "" || this.#isChunked)) return this.write(chunk);
    const copy = copyOf(chunk);
    return this.write(copy.bytes, undefined, copy.release);
  }

  override end(chunk?: unknown, encoding?: unknown, callback?: unknown): this {
    const done = [chunk, encoding, callback].find((each) => typeof each === "function") as Done;
    if (!this.#isWritable(done)) return this;
    const data = typeof chunk === "function" ? "" : bytesOf(chunk, encoding);
    if (!this.headersSent) this.#writeHead(this.statusCode, this.#statusText(), undefined, data.length);
    this.finished = true;
    if (done !== undefined) this.once("finish", done);
    this.#send(data, true, (error) => {
      if (error == null && !this.destroyed) this.#sink.sent(this);
    });
    return this;
  }

  override flushHeaders(): void {
    if (!this.#isWritable(undefined)) return;
    if (!this.headersSent) this.#writeHead(this.statusCode, this.#statusText(), undefined);
    const text = this.#head;
    this.#head = "";
    if (text !== "") this.#sink.socket.write(text, "latin1");
  }

  override writeContinue(): void {
    this.#sink.socket.write("HTTP/1.1 100 Continue\r\n\r\n", "latin1");
  }

  /** Called when the socket has room again. */
  drained(): void {
    if (!this.isFull) return;
    this.isFull = false;
    this.emit("drain");
  }

  /** Called after the end of the response, or of its connection. */
  settle(isSent: boolean): void {
    (this as { socket: Socket | null }).socket = null;
    this.destroyed = true;
    (this as { _closed?: boolean })._closed = true;
    this.isSent = isSent;
    try {
      if (isSent) this.emit("finish");
    } finally {
      this.emit("close");
    }
  }

  #statusText(): string {
    return this.statusMessage ?? STATUS_CODES[this.statusCode] ?? "unknown";
  }

  /** A late write is dropped: its response has ended, or its visitor has left. */
  #isWritable(done: Done): boolean {
    if (!this.destroyed && !this.finished) return true;
    if (done !== undefined) process.nextTick(done, new Error("the response has ended"));
    return false;
  }

  /** Sends a part of the body, and with it the head and the frame of a chunk. */
  #send(data: Buffer | string, isEnd: boolean, done: Done): boolean {
    const { socket } = this.#sink;
    let before = this.#head;
    let after = "";
    let body = data;
    this.#head = "";
    if (!this.#hasBody) body = "";
    else {
      this.bodyBytes += data.length;
      this.#left -= data.length;
      // A wrong length would make the next response a part of this one, or the reverse.
      if (this.#left < 0 || (isEnd && this.#left > 0 && this.#left !== Infinity)) {
        this.#breakOff(before, this.#left < 0 ? "" : data);
        return false;
      }
    }
    if (this.#isChunked) {
      if (body.length > 0) {
        before += `${body.length.toString(16)}\r\n`;
        after = "\r\n";
      }
      if (isEnd) after += `0\r\n${this.#trailers()}\r\n`;
    }
    this.#sink.writes();
    const hasRoom = write(socket, before, body, after, done);
    if (!hasRoom) this.isFull = true;
    return hasRoom;
  }

  /** Shows the visitor that the response is incomplete. */
  #breakOff(head: string, data: Buffer | string): void {
    const { socket } = this.#sink;
    write(socket, head, data, "", undefined);
    this.destroyed = true;
    socket.destroySoon();
  }

  /** node:http has checked them. */
  #trailers(): string {
    return (this as { _trailer?: string })._trailer ?? "";
  }
}

Object.defineProperties(Http1Response.prototype, {
  writableNeedDrain: {
    get(this: Http1Response): boolean {
      return this.isFull && !this.destroyed && !this.finished;
    },
  },
  writableFinished: {
    get(this: Http1Response): boolean {
      return this.isSent;
    },
  },
});

/** The bytes of a chunk; a text stays one if it is Latin-1. */
function bytesOf(chunk: unknown, encoding: unknown): Buffer | string {
  if (chunk === undefined || chunk === null) return "";
  if (typeof chunk === "string")
    return encoding === "latin1" ? chunk : Buffer.from(chunk, (encoding ?? "utf8") as BufferEncoding);
  if (Buffer.isBuffer(chunk)) return chunk;
  if (chunk instanceof Uint8Array) return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  throw new TypeError(`Expected a text or bytes but received ${typeof chunk}`);
}

/** Writes three parts, and calls back when the system has them. Returns whether the socket has room for more. */
function write(socket: Socket, before: string, data: Buffer | string, after: string, done: Done): boolean {
  if (before === "" && after === "") {
    if (data.length > 0)
      return typeof data === "string" ? socket.write(data, "latin1", done) : socket.write(data, done);
    if (done !== undefined) {
      if (socket.writableLength > 0) socket.write("", "latin1", done);
      else process.nextTick(done);
    }
    return true;
  }
  if (typeof data === "string" || data.length <= joinedBytesMax) {
    const text = typeof data === "string" ? data : data.toString("latin1");
    return socket.write(before + text + after, "latin1", done);
  }
  socket.cork();
  if (before !== "") socket.write(before, "latin1");
  const hasRoom = after === "" ? socket.write(data, done) : socket.write(data);
  const isLast = after === "" ? hasRoom : socket.write(after, "latin1", done);
  socket.uncork();
  return isLast;
}
