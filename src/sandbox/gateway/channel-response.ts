import { IncomingMessage, STATUS_CODES, type OutgoingHttpHeaders, type ServerResponse } from "node:http";
import { Socket } from "node:net";
import { Writable } from "node:stream";
import { breakOff } from "../../platform/util/raw-http.ts";

/** The head of an answer. */
export interface Head {
  status: number;
  statusText: string;
  /** Names and values in turn. */
  headers: string[];
}

const noSocket = new Socket();

/** Makes a request of a channel look like one of Node's HTTP server. It has no body. */
export function channelRequest(method: string, url: string, rawHeaders: string[]): IncomingMessage {
  const request = new IncomingMessage(noSocket);
  request.method = method;
  request.url = url;
  request.rawHeaders = rawHeaders;
  request.complete = true;
  request.push(null);
  return request;
}

/**
 * The answer to a fetch of a snippet. The head is sent to the snippet. The body waits until the snippet reads
 * it, returns it unread (then it goes to the visitor directly), or drops it.
 */
export class ChannelResponse extends Writable {
  head: Head | undefined;
  readonly #onHead: (head: Head) => void;
  #target: Writable | undefined;
  #resume: (() => void) | undefined;

  constructor(onHead: (head: Head) => void) {
    super({ highWaterMark: 64 * 1024 });
    this.#onHead = onHead;
    this.on("error", () => {}); // the target is destroyed in `_destroy`
  }

  /** Only the methods that answer fetches are implemented. */
  asServerResponse(): ServerResponse {
    return this as unknown as ServerResponse;
  }

  get headersSent(): boolean {
    return this.head !== undefined;
  }

  writeHead(
    status: number,
    ...more: [string, (string[] | OutgoingHttpHeaders)?] | [(string[] | OutgoingHttpHeaders)?]
  ): this {
    const text = typeof more[0] === "string" ? more[0] : (STATUS_CODES[status] ?? "");
    const headers = (typeof more[0] === "string" ? more[1] : more[0]) ?? [];
    this.head = {
      status,
      statusText: text,
      headers: Array.isArray(headers)
        ? headers
        : Object.entries(headers).flatMap(([name, value]) =>
            [value ?? []].flat().flatMap((each) => [name, String(each)]),
          ),
    };
    this.#onHead(this.head);
    return this;
  }

  flushHeaders(): void {}
  addTrailers(): void {}

  /** Sends the body to `target`, and ends `target` with it. */
  sendTo(target: Writable): void {
    this.#target = target;
    if (this.destroyed) {
      breakOff(target); // failed before the body was wanted
      return;
    }
    target.on("close", () => this.destroy());
    this.#resume?.();
  }

  override _write(chunk: Buffer, _coding: string, done: (error?: Error | null) => void): void {
    this.#whenWanted((target) => {
      if (target.write(chunk)) done();
      else target.once("drain", done);
    });
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#whenWanted((target) => {
      target.end();
      done();
    });
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    // Breaking the connection off is the only way to show that the body is incomplete.
    if (!this.writableFinished && this.#target !== undefined) breakOff(this.#target);
    done(error);
  }

  #whenWanted(work: (target: Writable) => void): void {
    if (this.head === undefined) this.writeHead(200);
    if (this.#target !== undefined) work(this.#target);
    else this.#resume = () => work(this.#target!);
  }
}
