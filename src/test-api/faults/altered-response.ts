import { setTimeout as delay } from "node:timers/promises";
import { ResponseError, type ResponseReceiver, type Exchange } from "../../edge/origin-client/exchange.ts";
import { unawaited } from "../../platform/util/uncaught.ts";

/** A change to the body of an answer: a limited rate, an early end, or a wrong byte. */
export interface Alteration {
  bytesPerSecond?: number;
  cutAfterBytes?: number;
  damageByte?: number;
}

const slowMs = 50;

/** Passes a response on with a changed body. Only one chunk waits at a time, and the origin is paused meanwhile. */
export class AlteredResponse implements ResponseReceiver, Exchange {
  readonly #to: ResponseReceiver;
  readonly #alteration: Alteration;
  #exchange: Exchange | undefined;
  #passedBytes = 0;
  #isOver = false;
  #isPaused = false;
  /** Resolves when all chunks so far were sent. */
  #sending: Promise<void> = Promise.resolve();

  constructor(to: ResponseReceiver, alteration: Alteration) {
    this.#to = to;
    this.#alteration = alteration;
  }

  began(exchange: Exchange): void {
    this.#exchange = exchange;
    this.#to.began(this);
  }

  head(status: number, text: string, headers: string[]): void {
    this.#to.head(status, text, headers);
    if (this.#alteration.cutAfterBytes === 0) this.#cut();
  }

  data(chunk: Buffer): void {
    if (this.#isOver) return;
    const { bytesPerSecond } = this.#alteration;
    if (bytesPerSecond === undefined) return this.#pass(chunk);
    const kept = Buffer.from(chunk); // the connection uses its buffer again
    this.#exchange?.pause();
    this.#sending = this.#sending.then(() => this.#slowly(kept, bytesPerSecond));
  }

  end(last: string, trailers: readonly string[]): void {
    if (last !== "") this.data(Buffer.from(last, "latin1"));
    const end = (): void => {
      if (this.#isOver) return;
      this.#isOver = true;
      this.#to.end("", trailers);
    };
    if (this.#alteration.bytesPerSecond === undefined) end();
    else unawaited(this.#sending.then(end));
  }

  failed(error: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#to.failed(error);
  }

  abort(error: Error): void {
    this.#exchange?.abort(error);
    this.failed(error);
  }

  pause(): void {
    this.#isPaused = true;
    this.#exchange?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#exchange?.resume();
  }

  async #slowly(chunk: Buffer, bytesPerSecond: number): Promise<void> {
    const step = Math.max(1, Math.floor((bytesPerSecond * slowMs) / 1000));
    const stepMs = (step / bytesPerSecond) * 1000;
    for (let at = 0; at < chunk.length && !this.#isOver; at += step) {
      await delay(stepMs);
      if (!this.#isOver) this.#pass(chunk.subarray(at, at + step));
    }
    if (!this.#isPaused) this.#exchange?.resume();
  }

  #pass(chunk: Buffer): void {
    const { cutAfterBytes = Infinity, damageByte = -1 } = this.#alteration;
    const at = damageByte - this.#passedBytes;
    const left = cutAfterBytes - this.#passedBytes;
    this.#passedBytes += chunk.length;
    let passed = chunk.subarray(0, Math.min(chunk.length, left));
    if (at >= 0 && at < passed.length) {
      passed = Buffer.from(passed);
      passed[at]! ^= 0xff;
    }
    if (passed.length > 0) this.#to.data(passed);
    if (chunk.length >= left) this.#cut();
  }

  #cut(): void {
    this.abort(new ResponseError("a fault of the test kit has cut the answer"));
  }
}
