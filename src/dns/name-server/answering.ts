import type { DnsClient, Responder } from "./responder.ts";
import type { TakeQuestion } from "./under-test.ts";
import { Awaited, type Flattening } from "./zone/flattening.ts";

/** How long a query waits for the lookup of an external name. */
const waitMs = 4000;
const waitingMax = 10_000;

export interface ErrorLog {
  error(details: object, message: string): void;
}

type Send = (answer: Buffer | undefined) => void;

/**
 * Passes messages to the responder, and again after a lookup that they need. Errors are logged, so no message
 * can stop the server.
 */
export class Answering {
  readonly #responder: Responder;
  readonly #flattening: Flattening;
  readonly #logger: ErrorLog;
  #waiting = 0;
  /** Receives each question first. Only the test kit sets it, which uses neither threads nor batches. */
  underTest: TakeQuestion | undefined;

  constructor(responder: Responder, flattening: Flattening, logger: ErrorLog) {
    this.#responder = responder;
    this.#flattening = flattening;
    this.#logger = logger;
  }

  /**
   * Answers the first `length` bytes of `message`. The caller may reuse the buffer as soon as this returns.
   * `send` is called once, with undefined for no response.
   */
  take(message: Buffer, length: number, client: DnsClient, send: Send): void {
    const { underTest } = this;
    if (underTest === undefined) this.#take(message, length, client, send);
    else {
      const kept = Buffer.from(message.subarray(0, length));
      const goOn = (): void => this.#take(kept, length, client, send);
      if (!underTest({ message: kept, isTcp: client.isTcp, send, goOn })) goOn();
    }
  }

  #take(message: Buffer, length: number, client: DnsClient, send: Send): void {
    const answer = this.answer(message, length, client);
    if (answer instanceof Awaited) this.wait(answer, message, length, client, send);
    else send(answer);
  }

  /** Like `take`, without a callback. If it returns Awaited, pass that to `wait`. */
  answer(message: Buffer, length: number, client: DnsClient): Buffer | Awaited | undefined {
    try {
      return this.#responder.respond(message, length, client);
    } catch (error) {
      this.#logger.error(
        { err: error, message: message.toString("base64", 0, length) },
        "a DNS message was not answered",
      );
      return undefined;
    }
  }

  wait(awaited: Awaited, message: Buffer, length: number, { address, isTcp }: DnsClient, send: Send): void {
    this.#wait(awaited, Buffer.from(message.subarray(0, length)), { address, isTcp }, send);
  }

  #wait({ wanted }: Awaited, message: Buffer, client: DnsClient, send: Send): void {
    if (this.#waiting >= waitingMax) {
      send(undefined);
      return;
    }
    this.#waiting++;
    let isOver = false;
    const finish = (answer: Buffer | undefined): void => {
      isOver = true;
      this.#waiting--;
      clearTimeout(timer);
      send(answer);
    };
    const timer = setTimeout(() => finish(this.#responder.giveUp(message, message.length, client)), waitMs);
    timer.unref();
    const again = (awaited: Awaited["wanted"]): void =>
      this.#flattening.await(awaited, () => {
        if (isOver) return;
        const answer = this.answer(message, message.length, client);
        if (answer instanceof Awaited) again(answer.wanted);
        else finish(answer);
      });
    again(wanted);
  }
}
