import type { Logger } from "pino";
import { unawaited } from "../../../platform/util/uncaught.ts";
import type { QueueMessages } from "../messages.ts";
import type { Queues } from "../queues.ts";
import { clock } from "../../../platform/timers/clock.ts";

/** Interval of the check of all queues, for leases of earlier processes and other nodes. */
const intervalMs = 60_000;
/** Leases that end within this time are handled together. */
const grainMs = 250;

/** Retires pulled messages when their last lease expires, without waiting for the next pull. */
export class Retirement {
  readonly #queues: Queues;
  readonly #messages: QueueMessages;
  readonly #logger: Logger;
  /** Timers by queue and end of the lease. */
  readonly #timers = new Map<string, NodeJS.Timeout>();
  #interval: NodeJS.Timeout | undefined;

  constructor(queues: Queues, messages: QueueMessages, logger: Logger) {
    this.#queues = queues;
    this.#messages = messages;
    this.#logger = logger;
    messages.onLastLease((queueNumber, endsOn) => this.#lookAt(queueNumber, endsOn));
  }

  start(): void {
    this.#interval = setInterval(() => unawaited(this.#lookAtAll()), intervalMs);
    this.#interval.unref();
    unawaited(this.#lookAtAll());
  }

  stop(): void {
    clearInterval(this.#interval);
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    this.#interval = undefined;
  }

  #lookAt(queueNumber: number, endsOn: number): void {
    if (this.#interval === undefined) return;
    const dueOn = Math.ceil(endsOn / grainMs) * grainMs;
    const key = `${queueNumber}:${dueOn}`;
    if (this.#timers.has(key)) return;
    const timer = setTimeout(() => {
      this.#timers.delete(key);
      unawaited(this.#retire(queueNumber));
    }, dueOn - clock.now());
    this.#timers.set(key, timer.unref());
  }

  async #lookAtAll(): Promise<void> {
    for (const { number, consumer } of this.#queues.all())
      if (consumer?.type === "http_pull") await this.#retire(number);
  }

  async #retire(queueNumber: number): Promise<void> {
    const queue = Iterator.from(this.#queues.all()).find(({ number }) => number === queueNumber);
    if (queue === undefined) return;
    try {
      await this.#messages.retire(queue);
    } catch (error) {
      this.#logger.warn({ err: error, queue: queue.name }, "retiring pulled messages failed");
    }
  }
}
