import type { Logger } from "pino";
import type { Client, Responder } from "./responder.ts";
import { Awaited, type Flattening } from "./zone/flattening.ts";

/** How long a question waits for a name that is looked up elsewhere. */
const waitMs = 4000;
const waitingMax = 10_000;

type Send = (answer: Buffer | undefined) => void;

/** Gives messages to the responder, and again once what it awaits is known; no message can bring it down. */
export class Answering {
  readonly #responder: Responder;
  readonly #flattening: Flattening;
  readonly #logger: Pick<Logger, "error">;
  #waiting = 0;

  constructor(responder: Responder, flattening: Flattening, logger: Pick<Logger, "error">) {
    this.#responder = responder;
    this.#flattening = flattening;
    this.#logger = logger;
  }

  /** `send` is called once, with undefined for silence; `message` is not used after that. */
  take(message: Buffer, client: Client, send: Send): void {
    let answer: Buffer | Awaited | undefined;
    try {
      answer = this.#responder.respond(message, message.length, client);
    } catch (error) {
      this.#logger.error(
        { err: error, message: message.toString("base64") },
        "a DNS message was not answered",
      );
      send(undefined);
      return;
    }
    if (answer instanceof Awaited) this.#wait(answer, message, client, send, Date.now() + waitMs);
    else send(answer);
  }

  #wait({ wanted }: Awaited, message: Buffer, client: Client, send: Send, deadlineMs: number): void {
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
    const timer = setTimeout(
      () => finish(this.#responder.giveUp(message, message.length, client)),
      deadlineMs - Date.now(),
    );
    timer.unref();
    const again = (awaited: Awaited["wanted"]): void =>
      this.#flattening.await(awaited, () => {
        if (isOver) return;
        const answer = this.#responder.respond(message, message.length, client);
        if (answer instanceof Awaited) again(answer.wanted);
        else finish(answer);
      });
    again(wanted);
  }
}
