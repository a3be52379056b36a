import type { Socket } from "node:net";
import { holdContinue } from "../../platform/listen/continue.ts";
import { ChunkedDecoder } from "../origin-client/chunked-decoder.ts";
import type { CoarseClock, Timed } from "../origin-client/coarse-clock.ts";
import { ResponseError } from "../origin-client/exchange.ts";
import { malformed, RequestError } from "./errors.ts";
import { readFromSocket, readIntoShared, received } from "./received.ts";
import { mayBegin, parseRequestHead, type ParsedHead } from "./request-head.ts";
import { Http1Request, type RequestSource } from "./request.ts";
import { Http1Response, type ResponseSink } from "./response.ts";

/** Times in ms, and sizes in bytes. */
export interface Http1Limits {
  /** Size of a request's head, and of its trailers. */
  headerBytesMax: number;
  /** Time for the first byte of a connection, and for the head of a request. */
  headTimeoutMs: number;
  /** Time between two requests. */
  keepAliveTimeoutMs: number;
  /** Time without traffic in either direction during a request. */
  idleTimeoutMs: number;
}

/** The server of a connection. */
export interface ConnectionServer {
  readonly clock: CoarseClock;
  readonly limits: Http1Limits;
  /** Whether each response ends its connection. */
  readonly isEnding: boolean;
  serve(request: Http1Request, response: Http1Response): void;
  isUpgrade(request: Http1Request): boolean;
  serveUpgrade(request: Http1Request, socket: Socket, head: Buffer): void;
  /** Answers bytes that are no request, and ends the connection. `text` are bytes of them, in Latin-1. */
  refuse(error: RequestError, socket: Socket, text: string): void;
  isClosed(connection: Http1Connection): void;
  /** Runs a function outside of any request. */
  outside(work: () => void): void;
}

/**
 * "head": waits for the head of a request. "body": receives its body. "answer": has received all of it, and waits for the
 * end of its response. "ended": receives nothing more. "upgraded": the connection is no longer the server's.
 */
type State = "head" | "body" | "answer" | "ended" | "upgraded";

/** Bytes that are read as text, to find a head. */
const textBytes = 16 * 1024;

/** A visitor's connection over HTTP/1.1. It serves one request at a time; the bytes of the next ones wait. */
export class Http1Connection implements Timed, RequestSource, ResponseSink {
  deadlineMs: number;
  readonly socket: Socket;
  readonly #owner: ConnectionServer;
  /** Whether bytes come through the shared buffer. */
  readonly #isShared: boolean;
  #state: State = "head";
  /** Bytes of an incomplete head. */
  #text = "";
  #head: ParsedHead | undefined;
  #request: Http1Request | undefined;
  #response: Http1Response | undefined;
  /** Bytes of the body that are still to come, if its length is known. */
  #left = 0;
  #chunks: ChunkedDecoder | undefined;
  /** Bytes behind the current request. */
  #pending: Buffer | undefined;
  #isPaused = false;
  #isFresh = true;
  #wasFreshBefore = false;

  constructor(socket: Socket, owner: ConnectionServer) {
    this.socket = socket;
    this.#owner = owner;
    this.deadlineMs = owner.clock.in(owner.limits.headTimeoutMs);
    owner.clock.add(this);
    socket
      .on("error", destroy)
      .on("close", this.#closed)
      .on("end", this.#otherSideEnds)
      .on("drain", this.#drained);
    this.#isShared = readIntoShared(socket, (length) => this.receive(received, length, false));
    if (!this.#isShared) socket.on("data", this.#take);
  }

  get isKeptAlive(): boolean {
    return this.#head!.isKeptAlive && !this.#owner.isEnding;
  }

  get keepAliveSeconds(): number {
    return Math.floor(this.#owner.limits.keepAliveTimeoutMs / 1000);
  }

  /** Closes the connection if it has no request. One that has just been opened gets a second chance. */
  closeIfIdle(): void {
    if (this.#state !== "head" || this.#text !== "") return;
    if (this.#isFresh && !this.#wasFreshBefore) this.#wasFreshBefore = true;
    else this.socket.destroySoon();
  }

  /** Reads received bytes. `isOwned`: nothing overwrites them later. Returns false to stop reading. */
  receive(bytes: Buffer, length: number, isOwned: boolean): boolean {
    if (this.#response !== undefined) this.writes();
    let at = 0;
    try {
      while (at < length) {
        if (this.#state === "head") at = this.#readHead(bytes, at, length);
        else if (this.#state === "body") at = this.#readBody(bytes, at, length, isOwned);
        else break;
      }
    } catch (error) {
      if (!(error instanceof RequestError || error instanceof ResponseError)) {
        this.#state = "ended"; // a reader of the body failed, and bytes behind it would be read from their middle on
        throw error;
      }
      this.#refuse(error instanceof RequestError ? error : malformed(), bytes.toString("latin1", 0, length));
      return true;
    }
    if (at < length && this.#state === "answer") this.#keep(bytes.subarray(at, length), isOwned);
    return !this.#isPaused;
  }

  wantsBody(): void {
    if (this.#state === "body") this.#resume();
  }

  writes(): void {
    this.deadlineMs = this.#owner.clock.in(this.#owner.limits.idleTimeoutMs);
  }

  sent(response: Http1Response): void {
    if (this.#response !== response) return; // the connection was closed
    const request = this.#request!;
    this.#response = undefined;
    try {
      response.settle(true);
    } finally {
      if (response.isLast || this.#state === "ended") this.#end();
      else if (request.complete) this.#next();
      else request.resume(); // drops the rest of a body that was not read
    }
  }

  expire(): void {
    const { socket } = this;
    const isAtHead = this.#state === "head" && (this.#isFresh || this.#text !== "");
    if (isAtHead) this.#refuse(new RequestError("late", "the head of the request is late"), this.#text);
    else if (this.#state !== "head" && socket.writableLength > 0) {
      // The socket knows whether the visitor reads.
      this.deadlineMs = Infinity;
      socket.setTimeout(this.#owner.limits.idleTimeoutMs, () => socket.destroy());
    } else socket.destroy();
  }

  #readHead(bytes: Buffer, from: number, length: number): number {
    const before = this.#text.length;
    const to = Math.min(length, from + textBytes);
    const text = this.#text + bytes.toString("latin1", from, to);
    // Empty lines before a request have no meaning (RFC 9112, 2.2).
    let start = 0;
    while (text.startsWith("\r\n", start)) start += 2;
    const end = text.indexOf("\r\n\r\n", Math.max(start, before - 3));
    const { headerBytesMax, headTimeoutMs } = this.#owner.limits;
    if ((end < 0 ? text.length : end) - start > headerBytesMax)
      throw new RequestError("too large", "the head of the request is too large");
    if (end < 0) {
      const part = start === 0 ? text : text.slice(start);
      if (part !== "" && part !== "\r" && !mayBegin(part, start === 0 ? before : 0)) throw malformed();
      if (this.#text === "" && part !== "") this.deadlineMs = this.#owner.clock.in(headTimeoutMs);
      this.#text = part;
      return to;
    }
    this.#text = "";
    this.#begin(parseRequestHead(text.slice(start, end + 2)), bytes, from + end + 4 - before, length);
    return this.#state === "upgraded" ? length : from + end + 4 - before;
  }

  /** Serves a request whose head has arrived. */
  #begin(head: ParsedHead, bytes: Buffer, bodyFrom: number, length: number): void {
    this.#isFresh = false;
    this.#head = head;
    if (head.method === "CONNECT") {
      this.#state = "ended";
      this.socket.destroy();
      return;
    }
    const request = new Http1Request(this, head);
    if (head.isUpgrade && this.#owner.isUpgrade(request)) {
      request.isWithoutBody();
      this.#upgrade(request, Buffer.from(bytes.subarray(bodyFrom, length)));
      return;
    }
    this.#request = request;
    const response = new Http1Response(request, this);
    this.#response = response;
    this.writes();
    this.#left = head.length ?? 0;
    this.#chunks =
      head.length === undefined ? new ChunkedDecoder(this.#owner.limits.headerBytesMax) : undefined;
    if (head.length === 0) {
      this.#state = "answer";
      request.isWithoutBody();
    } else this.#state = "body";
    if (head.expect !== undefined && head.httpVersion === "1.1" && !this.#expects(head, request, response))
      return;
    this.#owner.serve(request, response);
  }

  /** Whether a request with Expect can be served. */
  #expects({ expect = "" }: ParsedHead, request: Http1Request, response: Http1Response): boolean {
    if (/(?:^|\W)100-continue(?:$|\W)/.test(expect)) {
      holdContinue(request, response);
      return true;
    }
    response.writeHead(417, { connection: "close" }).end();
    return false;
  }

  #upgrade(request: Http1Request, head: Buffer): void {
    const { socket } = this;
    const { idleTimeoutMs } = this.#owner.limits;
    this.#state = "upgraded";
    this.#owner.clock.delete(this);
    socket.off("end", this.#otherSideEnds).off("drain", this.#drained).off("error", destroy);
    if (this.#isShared) readFromSocket(socket);
    else socket.off("data", this.#take);
    // As before the first reader, so that the next one starts the flow.
    (socket as { readableFlowing: boolean | null }).readableFlowing = null;
    socket.setTimeout(idleTimeoutMs, () => socket.destroy());
    this.#owner.serveUpgrade(request, socket, head);
  }

  #readBody(bytes: Buffer, from: number, length: number, isOwned: boolean): number {
    const request = this.#request!;
    const chunks = this.#chunks;
    let dataFrom = from;
    let at: number;
    if (chunks === undefined) {
      at = Math.min(length, from + this.#left);
      this.#left -= at - from;
    } else {
      at = chunks.read(bytes, from, length);
      dataFrom = chunks.dataFrom;
    }
    if (dataFrom < at) {
      const part = bytes.subarray(dataFrom, at);
      if (!request.receive(isOwned ? part : Buffer.from(part))) this.#isPaused = true;
    }
    if (chunks === undefined ? this.#left === 0 : chunks.trailers !== undefined)
      this.#finishBody(request, chunks?.trailers ?? []);
    if (this.#isPaused && !this.#isShared) this.socket.pause();
    return at;
  }

  #finishBody(request: Http1Request, trailers: readonly string[]): void {
    if (this.#state === "body") this.#state = "answer";
    request.finish(trailers);
    this.#resume();
    if (this.#response === undefined && this.#state === "answer") this.#next();
  }

  /** Keeps bytes of the next request until the current one is answered. */
  #keep(bytes: Buffer, isOwned: boolean): void {
    const kept = this.#pending;
    if (kept !== undefined) this.#pending = Buffer.concat([kept, bytes]);
    else this.#pending = isOwned ? bytes : Buffer.from(bytes);
    if (this.#pending.length < this.#owner.limits.headerBytesMax) return;
    this.#isPaused = true;
    if (!this.#isShared) this.socket.pause();
  }

  #next(): void {
    this.#state = "head";
    this.#request = undefined;
    this.#chunks = undefined;
    this.deadlineMs = this.#owner.clock.in(this.#owner.limits.keepAliveTimeoutMs);
    const bytes = this.#pending;
    if (bytes === undefined) return;
    this.#pending = undefined;
    const wasPaused = this.#isPaused;
    this.#isPaused = false;
    this.#owner.outside(() => {
      if (this.receive(bytes, bytes.length, true) && wasPaused) this.socket.resume();
    });
  }

  #resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.socket.resume();
  }

  /** Ends the connection after its last response. */
  #end(): void {
    const { socket } = this;
    this.#state = "ended";
    // Closing sends FIN too. TLS has a message of its own before it.
    if (this.#isShared && socket.writableLength === 0) socket.destroy();
    else socket.destroySoon();
  }

  #refuse(error: RequestError, text: string): void {
    const response = this.#response;
    const { socket } = this;
    this.#state = "ended";
    this.#text = "";
    if (response === undefined) {
      // The response was sent before the end of the body.
      if (this.#request !== undefined) socket.destroySoon();
      else this.#owner.refuse(error, socket, text);
    } else if (response.finished) response.isLast = true;
    else if (response.isWhole) {
      response.isLast = true;
      response.end();
    } else if (response.headersSent) socket.destroy();
    else this.#owner.refuse(error, socket, text);
  }

  readonly #take = (chunk: Buffer): void => {
    this.receive(chunk, chunk.length, true);
  };

  readonly #otherSideEnds = (): void => {
    const isCut = this.#state === "body" || (this.#state === "head" && this.#text !== "");
    if (isCut) this.#refuse(malformed("the request is incomplete"), this.#text);
    else if (this.#response === undefined || this.#response.finished) this.socket.destroySoon();
    else this.socket.destroy();
  };

  readonly #drained = (): void => {
    if (this.#response === undefined) return;
    this.writes();
    this.#response.drained();
  };

  readonly #closed = (): void => {
    const request = this.#request;
    const response = this.#response;
    this.#owner.clock.delete(this);
    this.#owner.isClosed(this);
    if (this.#state === "upgraded") return;
    this.#state = "ended";
    this.#request = undefined;
    this.#response = undefined;
    if (request !== undefined && (response !== undefined || !request.complete)) request.destroy(aborted());
    response?.settle(false);
  };
}

function destroy(this: Socket): void {
  this.destroy();
}

const aborted = (): Error => Object.assign(new Error("aborted"), { code: "ECONNRESET" });
