import type { ServerResponse } from "node:http";
import type { Span } from "../../platform/tracing/spans/span.ts";
import { breakOff } from "../../platform/util/raw-http.ts";
import { reasonPhrase } from "../../platform/util/reason-phrase.ts";
import type { Path, Race } from "../configuration/route.ts";
import { visitorErrors } from "../http/errors.ts";
import { Http1Response } from "../http-server/response.ts";
import { visitorHeaders, visitorTrailers } from "../http/headers.ts";
import type { ResponseReceiver, Exchange } from "../origin-client/exchange.ts";
import { attemptAnswered, attemptFailed } from "./attempt-trace.ts";
import type { OriginRequest } from "./proxy.ts";

/** One attempt at a request, and the visitor's response. */
export interface DeliveryParts {
  response: ServerResponse;
  origin: Pick<OriginRequest, "ray" | "record">;
  path: Path;
  race: Race | undefined;
  /** Undefined if no trace is kept. */
  span: Span | undefined;
}

/**
 * Passes an origin's answer on to the visitor. Calls `done` once all of it is written, or was cut off after its beginning,
 * and `failed` if none of it was written.
 */
export class ResponseDelivery implements ResponseReceiver {
  readonly #to: DeliveryParts;
  readonly #done: () => void;
  readonly #failed: (error: Error) => void;
  #exchange: Exchange | undefined;
  #hasAnswered = false;
  #isFull = false;

  constructor(to: DeliveryParts, done: () => void, failed: (error: Error) => void) {
    this.#to = to;
    this.#done = done;
    this.#failed = failed;
  }

  began(exchange: Exchange): void {
    this.#exchange = exchange;
    const { race, response } = this.#to;
    race?.started((why) => exchange.abort(why));
    if (response.destroyed) this.#abandon();
    else response.on("close", this.#abandon);
  }

  head(status: number, text: string, headers: string[]): void {
    const { response, path, race, span } = this.#to;
    const { ray, record } = this.#to.origin;
    const failure = path.failure?.(status, headers) ?? race?.claim(status);
    if (failure !== undefined) {
      this.#exchange!.abort(failure);
      return;
    }
    record?.originAnswers(status);
    if (span !== undefined) attemptAnswered(span, status);
    try {
      response.writeHead(status, reasonPhrase(status, text), visitorHeaders(headers, ray, status));
    } catch (error) {
      this.#exchange!.abort(visitorErrors.originFailed(error)); // a status or header that cannot be sent to this visitor
      return;
    }
    this.#hasAnswered = true;
  }

  get copiesData(): boolean {
    return this.#to.response instanceof Http1Response;
  }

  data(chunk: Buffer): void {
    const { response } = this.#to;
    const hasRoom = response instanceof Http1Response ? response.writeCopy(chunk) : response.write(chunk);
    // A single read from the origin may contain thousands of chunks, which still arrive after the pause.
    if (hasRoom || this.#isFull) return;
    this.#isFull = true;
    this.#exchange!.pause();
    response.once("drain", this.#resume);
  }

  end(last: string, trailers: readonly string[]): void {
    const { response, span } = this.#to;
    this.#settle();
    const kept = trailers.length === 0 ? undefined : visitorTrailers(trailers);
    if (kept !== undefined) response.addTrailers(kept);
    // Node sends the head and a body that is a string in one write.
    if (last === "") response.end();
    else response.end(last, "latin1");
    span?.end();
    this.#done();
  }

  failed(error: Error): void {
    const { response, span } = this.#to;
    this.#settle();
    if (span !== undefined) attemptFailed(span, error);
    if (this.#hasAnswered || response.destroyed) {
      // The visitor has part of the response: only an abnormal close shows that it is incomplete.
      breakOff(response);
      this.#done();
    } else this.#failed(error);
  }

  readonly #abandon = (): void => this.#exchange?.abort(new Error("the visitor left"));
  readonly #resume = (): void => {
    this.#isFull = false;
    this.#exchange?.resume();
  };

  #settle(): void {
    this.#to.response.off("close", this.#abandon).off("drain", this.#resume);
  }
}
