import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { visitorErrors } from "./errors.ts";

const lingerMs = 2000;

/**
 * Discards what nobody has read of a request's body, and calls back when it has ended or has had its time. Closing at
 * once would reset the connection under a visitor who is still sending, and take the answer away with it.
 */
export function afterBody(request: IncomingMessage, done: () => void): void {
  if (request.complete || request.destroyed) {
    done();
    return;
  }
  const finish = (): void => {
    clearTimeout(timer);
    request.off("end", finish).off("close", finish);
    done();
  };
  const timer = setTimeout(finish, lingerMs);
  request.on("end", finish).on("close", finish).on("error", finish);
  request.resume();
}

/**
 * A request's body, counted: more than `bytesMax` is an error. The request is not touched before the first read, and
 * whoever destroys this stream does not end the visitor's connection with it.
 */
export class CountedBody extends Readable {
  readonly #request: IncomingMessage;
  readonly #bytesMax: number;
  #bytes = 0;
  #isReading = false;

  constructor(request: IncomingMessage, bytesMax: number) {
    super();
    this.#request = request;
    this.#bytesMax = bytesMax;
    this.on("error", () => {}); // whoever reads is told; nobody may be reading any more
  }

  /** Whether some of the request may be gone: then another stream of it would not be whole. */
  get isTouched(): boolean {
    return this.#isReading;
  }

  override _read(): void {
    if (!this.#isReading) {
      this.#isReading = true;
      this.#request
        .on("data", this.#take)
        .on("end", this.#end)
        .on("error", this.#fail)
        .on("close", this.#fail);
    }
    this.#request.resume();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#request.off("data", this.#take).off("end", this.#end).off("close", this.#fail);
    done(error);
  }

  readonly #take = (chunk: Buffer): void => {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#bytesMax) this.destroy(visitorErrors.bodyTooLarge());
    else if (!this.push(chunk)) this.#request.pause();
  };
  readonly #end = (): void => void this.push(null);
  readonly #fail = (error?: Error): void => {
    if (!this.#request.readableEnded) this.destroy(error ?? new Error("the visitor left"));
  };
}
