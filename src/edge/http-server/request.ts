import { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { ParsedHead } from "./request-head.ts";

/** How the parser of node:http sets the fields, from which `headers` and `trailers` follow when they are first read. */
interface FieldReceiver {
  _addHeaderLines(fields: readonly string[], length: number): void;
}

/** The connection of a request. */
export interface RequestSource {
  readonly socket: Socket;
  /** Called when the body is read. */
  wantsBody(): void;
}

/** A request with the interface of those of node:http. */
export class Http1Request extends IncomingMessage {
  readonly #source: RequestSource;
  #hasEnd = false;

  constructor(source: RequestSource, head: ParsedHead) {
    super(source.socket);
    this.#source = source;
    this.method = head.method;
    this.url = head.target;
    addFields(this, head.headers);
    this.httpVersion = head.httpVersion;
    this.httpVersionMajor = 1;
    this.httpVersionMinor = head.httpVersion === "1.1" ? 1 : 0;
  }

  /** Adds a part of the body. Returns false if it should wait until more is wanted. */
  receive(chunk: Buffer): boolean {
    return this.destroyed || this.push(chunk);
  }

  /** The body is complete. */
  finish(trailers: readonly string[]): void {
    this.complete = true;
    addFields(this, trailers);
    if (!this.destroyed) this.#end();
  }

  /** There is no body. Its end is noted only when it is read, which is rare. */
  isWithoutBody(): void {
    this.complete = true;
  }

  override _read(): void {
    if (this.complete) this.#end();
    else this.#source.wantsBody();
  }

  #end(): void {
    if (this.#hasEnd) return;
    this.#hasEnd = true;
    this.push(null);
  }
}

const addFields = (request: IncomingMessage, fields: readonly string[]): void =>
  (request as IncomingMessage & FieldReceiver)._addHeaderLines(fields, fields.length);
