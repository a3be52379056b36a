import type { Readable } from "node:stream";
import type { Socket } from "node:net";

/** Events while a body is sent. */
export interface BodyEvents {
  /** Called when the socket's buffer is full, and again when it has room. */
  blocked(isBlocked: boolean): void;
  sent(): void;
  failed(error: Error): void;
}

/** Sends a request's body, with the length that its head has announced, or in chunks. */
export class RequestBody {
  readonly #body: Readable;
  readonly #socket: Socket;
  readonly #events: BodyEvents;
  readonly #isChunked: boolean;
  #left: number;
  isSent = false;

  constructor(body: Readable, length: number | undefined, socket: Socket, events: BodyEvents) {
    this.#body = body;
    this.#socket = socket;
    this.#events = events;
    this.#isChunked = length === undefined;
    this.#left = length ?? Infinity;
    body.on("data", this.#send).on("end", this.#finish).on("error", this.#fail).on("close", this.#cut);
    if (body.readableEnded) this.#finish();
    else if (body.destroyed) this.#cut();
  }

  /** Called when the socket's buffer has room again. */
  drained(): void {
    if (this.isSent) return;
    this.#events.blocked(false);
    this.#body.resume();
  }

  /** Stops reading the body. */
  stop(): void {
    this.#body
      .off("data", this.#send)
      .off("end", this.#finish)
      .off("error", this.#fail)
      .off("close", this.#cut);
    if (this.isSent) return;
    this.#body.on("error", () => {}).destroy();
  }

  readonly #send = (chunk: Buffer | string): void => {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    if (bytes.length === 0) return;
    // More bytes than announced would begin another request.
    if (bytes.length > this.#left) {
      this.#events.failed(new Error("the body is longer than its Content-Length"));
      return;
    }
    this.#left -= bytes.length;
    const socket = this.#socket;
    let isTaken: boolean;
    if (this.#isChunked) {
      socket.cork();
      socket.write(`${bytes.length.toString(16)}\r\n`, "latin1");
      socket.write(bytes);
      isTaken = socket.write("\r\n", "latin1");
      socket.uncork();
    } else isTaken = socket.write(bytes);
    if (isTaken) return;
    this.#body.pause();
    this.#events.blocked(true);
  };

  readonly #finish = (): void => {
    if (this.isSent) return;
    if (!this.#isChunked && this.#left > 0) {
      this.#events.failed(new Error("the body is shorter than its Content-Length"));
      return;
    }
    this.isSent = true;
    if (this.#isChunked) this.#socket.write("0\r\n\r\n", "latin1");
    this.#events.sent();
  };

  readonly #fail = (error: Error): void => this.#events.failed(error);

  readonly #cut = (): void => {
    if (!this.isSent && !this.#body.readableEnded) this.#events.failed(new Error("the body ended early"));
  };
}
