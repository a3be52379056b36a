import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { visitorErrors } from "./errors.ts";

/** Bodies up to this size are kept, so that they can be sent again. */
const keptBytesMax = 4096;

/**
 * A request's body with a byte count; exceeding `bytesMax` is an error. The request is not read before the
 * first read of this stream, and destroying this stream does not close the visitor's connection.
 */
export class CountedBody extends Readable {
  readonly #request: IncomingMessage;
  readonly #bytesMax: number;
  #bytes = 0;
  #isReading = false;
  /** The whole body, when it is small and arrived in one piece. */
  #whole: Buffer | undefined;

  constructor(request: IncomingMessage, bytesMax: number) {
    super();
    this.#request = request;
    this.#bytesMax = bytesMax;
    this.on("error", () => {}); // readers get the error; there may be no reader any more
  }

  get #length(): number {
    return Number(this.#request.headers["content-length"] ?? Number.NaN);
  }

  /** Whether part of the request may have been read, so that a second stream would be incomplete. */
  get isTouched(): boolean {
    return this.#isReading;
  }

  /**
   * A second stream of the same body, after this one is destroyed: possible when none of it was read, or when
   * it is small, arrived in one piece and had a declared length. Undefined otherwise.
   */
  again(): Readable | undefined {
    const { readableEnded, destroyed } = this.#request;
    if (this.#bytes === 0 && !readableEnded && !destroyed)
      return new CountedBody(this.#request, this.#bytesMax);
    return this.#whole && Object.assign(Readable.from([this.#whole]), { again: () => this.again() });
  }

  override _read(): void {
    if (!this.#isReading) {
      this.#isReading = true;
      this.#request
        .on("data", this.#take)
        .on("end", this.#end)
        .on("error", this.#fail)
        .on("close", this.#fail);
      // An empty body may have ended while its prefix was read.
      if (this.#request.readableEnded) this.push(null);
    }
    this.#request.resume();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#request.off("data", this.#take).off("end", this.#end).off("close", this.#fail);
    done(error);
  }

  readonly #take = (chunk: Buffer): void => {
    this.#bytes += chunk.length;
    const isWhole = chunk.length <= keptBytesMax && chunk.length === this.#bytes;
    this.#whole = isWhole && chunk.length === this.#length ? chunk : undefined;
    if (this.#bytes > this.#bytesMax) this.destroy(visitorErrors.bodyTooLarge());
    else if (!this.push(chunk)) this.#request.pause();
  };
  readonly #end = (): void => {
    if (this.#length === 0) this.#whole = Buffer.alloc(0);
    this.push(null);
  };
  readonly #fail = (error?: Error): void => {
    if (!this.#request.readableEnded) this.destroy(error ?? new Error("the visitor left"));
  };
}
