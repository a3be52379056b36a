import type { Logger } from "pino";
import type { QueueMessages, Settlement } from "../messages.ts";
import type { QueueMessage, Queue } from "../queue.ts";
import type { Queues } from "../queues.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";
import { clock } from "../../../platform/timers/clock.ts";
import { runAt } from "../../../platform/timers/run-at.ts";
import { earliest } from "../../../platform/timers/earliest.ts";

export interface MessageBatch {
  queue: Queue;
  /** The consumer's script. */
  scriptName: string;
  messages: readonly QueueMessage[];
}

/** The result of the consumer's `queue` handler. */
export interface MessageBatchResult {
  hasFailed: boolean;
  ackAll: boolean;
  retryBatch: { retry: boolean; delaySeconds?: number | undefined };
  explicitAcks: readonly string[];
  retryMessages: readonly { msgId: string; delaySeconds?: number | undefined }[];
}

/** Runs the consumer's handler. Rejects only when the handler could not run. */
export type Deliver = (batch: MessageBatch) => Promise<MessageBatchResult>;

const leaseMs = 60_000;
const concurrencyDefault = 10;
const giveBackMsMin = 1000;
const giveBackMsMax = 60_000;
const expiryIntervalMs = 60_000;
/** Poll interval for messages that other nodes have accepted. */
const pollMs = 1000;

/** Delivers the messages of queues with a worker consumer, with one loop for each queue. */
export class QueueDispatcher {
  readonly #queues: Queues;
  readonly #messages: QueueMessages;
  readonly #deliver: Deliver;
  readonly #logger: Logger;
  readonly #isShared: boolean;
  #loops = new Map<number, ConsumerLoop>();
  #poll: NodeJS.Timeout | undefined;
  #expiry: NodeJS.Timeout | undefined;
  #isRunning = false;
  #stopped: Promise<unknown> | undefined;
  /** Called with each batch whose delivery begins. */
  onDelivery: (batch: MessageBatch) => void = () => {};

  constructor(
    queues: Queues,
    messages: QueueMessages,
    deliver: Deliver,
    logger: Logger,
    options: { isShared: boolean },
  ) {
    this.#queues = queues;
    this.#messages = messages;
    this.#deliver = deliver;
    this.#logger = logger;
    this.#isShared = options.isShared;
    queues.onChange(() => this.#update());
    messages.onArrival((queueNumber) => this.#loops.get(queueNumber)?.wake());
  }

  async start(): Promise<void> {
    await this.#messages.recover();
    this.#isRunning = true;
    this.#update();
    if (this.#isShared) {
      this.#poll = setInterval(() => {
        unawaited(this.#wakeAvailable());
      }, pollMs);
      this.#poll.unref();
    }
    this.#expiry = setInterval(() => {
      unawaited(
        this.#messages.expire().then(
          (count) => count > 0 && this.#logger.warn({ count }, "queued messages expired undelivered"),
          (error: unknown) => this.#logger.warn({ err: error }, "expiring queued messages failed"),
        ),
      );
    }, expiryIntervalMs);
    this.#expiry.unref();
  }

  /** From now on, leaves messages to other nodes. Running batches continue. */
  stopClaiming(): void {
    this.#isRunning = false;
    clearInterval(this.#poll);
    clearInterval(this.#expiry);
    this.#stopped ??= Promise.all([...this.#loops.values()].map(async (loop) => loop.stop()));
  }

  /** Stops claiming messages and waits for running batches. */
  async stop(): Promise<void> {
    this.stopClaiming();
    await this.#stopped;
  }

  /** Returns the messages of running batches, so that other nodes deliver them again at once. */
  async giveBack(): Promise<void> {
    this.stopClaiming();
    await Promise.all([...this.#loops.values()].map(async (loop) => loop.giveBack()));
  }

  /** The running batches and searches for messages. */
  get inFlight(): number {
    return [...this.#loops.values()].reduce((sum, { busy }) => sum + busy, 0);
  }

  /** When a loop looks for messages without being woken; undefined if none does. */
  get nextOn(): number | undefined {
    return earliest([...this.#loops.values()].map(({ nextOn }) => nextOn));
  }

  /** Looks for the messages that are due now. Their deliveries have begun when it resolves. */
  async look(): Promise<void> {
    const now = clock.now();
    const due = [...this.#loops.values()].filter(({ nextOn }) => nextOn !== undefined && nextOn <= now);
    await Promise.all(due.map(async (loop) => loop.look()));
  }

  /** Other nodes accept messages for the same queues without notifying this one. */
  async #wakeAvailable(): Promise<void> {
    if (this.#loops.size === 0) return;
    try {
      for (const number of await this.#messages.available()) this.#loops.get(number)?.wake();
    } catch (error) {
      this.#logger.warn({ err: error }, "looking for queued messages failed");
    }
  }

  readonly #begin: Deliver = async (batch) => {
    this.onDelivery(batch);
    return this.#deliver(batch);
  };

  #update(): void {
    if (!this.#isRunning) return;
    const before = this.#loops;
    this.#loops = new Map();
    for (const queue of this.#queues.all()) {
      if (queue.consumer?.type !== "worker") continue;
      const loop = before.get(queue.number) ?? new ConsumerLoop(this.#messages, this.#begin, this.#logger);
      before.delete(queue.number);
      this.#loops.set(queue.number, loop);
      loop.follow(queue);
    }
    for (const loop of before.values()) unawaited(loop.stop());
  }
}

/** Delivers one queue's messages in batches. */
class ConsumerLoop {
  readonly #messages: QueueMessages;
  readonly #deliver: Deliver;
  readonly #logger: Logger;
  readonly #inFlight = new Set<Promise<void>>();
  /** The messages of running batches, by lease. */
  readonly #leased = new Map<string, { queue: Queue; messages: readonly QueueMessage[] }>();
  #queue: Queue | undefined;
  #cancelWait = (): void => {};
  #isLooking = false;
  #looksAgain = false;
  #nextOn: number | undefined;
  /** Consecutive failed deliveries. */
  #failures = 0;

  constructor(messages: QueueMessages, deliver: Deliver, logger: Logger) {
    this.#messages = messages;
    this.#deliver = deliver;
    this.#logger = logger;
  }

  follow(queue: Queue): void {
    this.#queue = queue;
    this.wake();
  }

  async stop(): Promise<void> {
    this.#queue = undefined;
    this.#nextOn = undefined;
    this.#cancelWait();
    await Promise.allSettled(this.#inFlight);
  }

  /** Their attempt counts, because the script may have handled some of them. */
  async giveBack(): Promise<void> {
    const returned = [...this.#leased].map(async ([lease, { queue, messages }]) =>
      this.#messages.giveBack(queue, lease, messages, { delayMs: 0, isAttempt: true }),
    );
    await Promise.allSettled(returned);
  }

  /** Looks for messages now, or again if it is looking already. */
  wake(): void {
    unawaited(this.look());
  }

  async look(): Promise<void> {
    this.#looksAgain = true;
    if (!this.#isLooking) await this.#lookWhileAsked();
  }

  get busy(): number {
    return this.#inFlight.size + (this.#isLooking ? 1 : 0);
  }

  /** When the loop looks for messages without being woken; undefined if it does not. */
  get nextOn(): number | undefined {
    return this.#nextOn;
  }

  async #lookWhileAsked(): Promise<void> {
    this.#isLooking = true;
    this.#cancelWait();
    this.#nextOn = undefined;
    let waitMs: number | undefined;
    let hasFailed = false;
    while (this.#looksAgain) {
      this.#looksAgain = false;
      try {
        waitMs = await this.#look();
        hasFailed = false;
      } catch (error) {
        this.#logger.warn({ err: error, queue: this.#queue?.name }, "looking for queued messages failed");
        hasFailed = true;
        waitMs = giveBackMsMin;
      }
    }
    this.#isLooking = false;
    if (this.#queue === undefined || waitMs === undefined) return;
    const wake = (): void => this.wake();
    this.#nextOn = clock.now() + waitMs;
    // A fault of the database ends without the clock of the test kit.
    this.#cancelWait = hasFailed ? clock.after(waitMs, wake) : runAt(this.#nextOn, wake);
  }

  /**
   * Starts all batches that can be delivered now. Returns the milliseconds until the next look; undefined
   * when only a wake triggers it.
   */
  async #look(): Promise<number | undefined> {
    for (;;) {
      const queue = this.#queue;
      const consumer = queue?.consumer;
      if (queue === undefined || consumer === undefined || queue.settings.isDeliveryPaused) return undefined;
      const { batchSize, maxWaitTimeMs, maxConcurrency } = consumer.settings;
      // The end of a batch wakes the loop.
      if (this.#inFlight.size >= (maxConcurrency ?? concurrencyDefault)) return undefined;
      const upcoming = await this.#messages.upcoming(queue, batchSize);
      const first = upcoming[0];
      if (first === undefined) return undefined;
      const now = clock.now();
      const isFull = upcoming.length === batchSize && upcoming.at(-1)! <= now;
      const dueOn = isFull ? now : first + maxWaitTimeMs;
      if (dueOn > now) {
        // Messages that become available later may fill the batch before it is due.
        const next = upcoming.find((availableOn) => availableOn > now);
        return Math.min(dueOn, next ?? dueOn) - now;
      }
      const { lease, messages } = await this.#messages.claim(queue, batchSize, leaseMs);
      if (messages.length === 0) continue;
      const delivery = this.#run(queue, consumer.scriptName!, lease, messages).finally(() => {
        this.#inFlight.delete(delivery);
        this.wake();
      });
      this.#inFlight.add(delivery);
    }
  }

  async #run(
    queue: Queue,
    scriptName: string,
    lease: string,
    messages: readonly QueueMessage[],
  ): Promise<void> {
    const log = { queue: queue.name, script: scriptName, messages: messages.length };
    const renewal = setInterval(() => {
      unawaited(
        this.#messages
          .extend(lease, leaseMs)
          .catch((error: unknown) => this.#logger.warn({ err: error, ...log }, "renewing a lease failed")),
      );
    }, leaseMs / 3);
    this.#leased.set(lease, { queue, messages });
    try {
      const result = await this.#deliver({ queue, scriptName, messages });
      this.#failures = 0;
      const retryDelay = queue.consumer?.settings.retryDelay ?? 0;
      await this.#messages.settle(queue, lease, settlement(messages, result, retryDelay));
    } catch (error) {
      this.#failures += 1;
      const delayMs = Math.min(giveBackMsMin * 2 ** (this.#failures - 1), giveBackMsMax);
      this.#logger.warn({ err: error, ...log, delay_ms: delayMs }, "a batch could not be delivered");
      await this.#messages.giveBack(queue, lease, messages, { delayMs }).catch((failure: unknown) => {
        // They become available when the lease ends.
        this.#logger.warn({ err: failure, ...log }, "a batch could not be returned to its queue");
      });
    } finally {
      this.#leased.delete(lease);
      clearInterval(renewal);
    }
  }
}

/** Decisions about single messages override those about the batch. A failed handler retries the rest. */
export function settlement(
  messages: readonly QueueMessage[],
  result: MessageBatchResult,
  retryDelay: number,
): Settlement {
  const acks = new Set(result.explicitAcks);
  const retries = new Map(result.retryMessages.map(({ msgId, delaySeconds }) => [msgId, delaySeconds]));
  const settled: Settlement = { acks: [], retries: [] };
  for (const { id, number, attempts } of messages) {
    const isRetried =
      !acks.has(id) && (retries.has(id) || (!result.ackAll && (result.retryBatch.retry || result.hasFailed)));
    if (!isRetried) settled.acks.push(number);
    else {
      const delaySeconds = retries.get(id) ?? result.retryBatch.delaySeconds ?? retryDelay;
      settled.retries.push({ number, attempts, delaySeconds });
    }
  }
  return settled;
}
