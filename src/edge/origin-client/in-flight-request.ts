import type { ResponseReceiver, ClientRequest, Exchange } from "./exchange.ts";
import type { OriginConnection } from "./connection.ts";
import type { RequestHead } from "./request-head.ts";
import type { Timed } from "./coarse-clock.ts";
import { visitorErrors } from "../http/errors.ts";

/** A request from its start to its end: it waits for a connection, or has one. */
export class InFlightRequest implements Exchange, Timed {
  readonly request: ClientRequest;
  readonly receiver: ResponseReceiver;
  head: RequestHead | undefined;
  connection: OriginConnection | undefined;
  deadlineMs = Infinity;
  #isEnded = false;
  /** Called when the request ends before it gets a connection. */
  readonly #leave: (waiting: InFlightRequest) => void;

  constructor(request: ClientRequest, receiver: ResponseReceiver, leave: (waiting: InFlightRequest) => void) {
    this.request = request;
    this.receiver = receiver;
    this.#leave = leave;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  abort(error: Error): void {
    if (this.#isEnded) return;
    if (this.connection !== undefined) this.connection.destroy(error);
    else this.fail(error);
  }

  pause(): void {
    if (!this.#isEnded) this.connection?.pause();
  }

  resume(): void {
    if (!this.#isEnded) this.connection?.resume();
  }

  /** Called when no connection became free in time. */
  expire(): void {
    this.fail(visitorErrors.originFirstByteTimeout());
  }

  end(last: string, trailers: readonly string[]): void {
    this.receiver.end(last, trailers); // if it throws, the request fails
    this.#isEnded = true;
  }

  fail(error: Error): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (this.connection === undefined) this.#leave(this);
    this.receiver.failed(error);
  }
}
