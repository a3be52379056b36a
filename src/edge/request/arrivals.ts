import type { IncomingMessage, ServerResponse } from "node:http";
import type { CurrentData } from "../../platform/processes/main-channel.ts";

type Arrival = readonly [request: IncomingMessage, response: ServerResponse];

/**
 * The requests that an edge process has read in one turn of the event loop. They are served at the end of the turn, after
 * one look for changes. The look comes after the last byte of each request, so it sees every change that was acknowledged
 * before the request was sent. A look at the first request would be too early: a later one may be sent after it.
 */
export class Arrivals {
  readonly #data: Pick<CurrentData, "isCurrent">;
  readonly #serve: (request: IncomingMessage, response: ServerResponse, isCurrent: boolean) => void;
  #arrived: Arrival[] = [];

  /** `serve` gets each request, and whether every acknowledged change is in effect. It throws nothing. */
  constructor(
    data: Pick<CurrentData, "isCurrent">,
    serve: (request: IncomingMessage, response: ServerResponse, isCurrent: boolean) => void,
  ) {
    this.#data = data;
    this.#serve = serve;
  }

  add(request: IncomingMessage, response: ServerResponse): void {
    if (this.#arrived.push([request, response]) === 1) setImmediate(this.#serveAll);
  }

  readonly #serveAll = (): void => {
    const arrived = this.#arrived;
    this.#arrived = [];
    const { isCurrent } = this.#data;
    for (const [request, response] of arrived) this.#serve(request, response, isCurrent);
  };
}
