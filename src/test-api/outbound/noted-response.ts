import type { ResponseReceiver, Exchange } from "../../edge/origin-client/exchange.ts";
import type { NotedRequest } from "./outbound.ts";

/** Passes a response on, and records its status. The exchange with a server may begin later, or never. */
export class NotedResponse implements ResponseReceiver, Exchange {
  readonly #to: ResponseReceiver;
  readonly #request: NotedRequest;
  #exchange: Exchange | undefined;
  #isOver = false;

  constructor(to: ResponseReceiver, request: NotedRequest) {
    this.#to = to;
    this.#request = request;
    to.began(this);
  }

  /** Whether the visitor has left, or the answer was sent. */
  get isOver(): boolean {
    return this.#isOver;
  }

  began(exchange: Exchange): void {
    this.#exchange = exchange;
  }

  head(status: number, text: string, headers: string[]): void {
    this.#request.status = status;
    this.#to.head(status, text, headers);
  }

  data(chunk: Buffer): void {
    this.#to.data(chunk);
  }

  end(last: string, trailers: readonly string[]): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#to.end(last, trailers);
  }

  failed(error: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#to.failed(error);
  }

  abort(error: Error): void {
    if (this.#exchange === undefined) this.failed(error);
    else this.#exchange.abort(error);
  }

  pause(): void {
    this.#exchange?.pause();
  }

  resume(): void {
    this.#exchange?.resume();
  }
}
