import type { Logger } from "pino";
import type { QueueMessages, Settlement } from "./messages.ts";
import type { Message, Queue } from "./queue.ts";
import type { Queues } from "./queues.ts";

export interface Batch {
  queue: Queue;
  /** The consumer. */
  scriptName: string;
  messages: readonly Message[];
}

/** What the consumer's `queue` handler came to. */
export interface BatchResult {
  hasFailed: boolean;
  ackAll: boolean;
  retryBatch: { retry: boolean; delaySeconds?: number | undefined };
  explicitAcks: readonly string[];
  retryMessages: readonly { msgId: string; delaySeconds?: number | undefined }[];
}

/** Runs the consumer's handler. Rejects only where it could not be run at all. */
export type Deliver = (batch: Batch) => Promise<BatchResult>;

const leaseMs = 60_000;
const concurrencyDefault = 10;
const giveBackMsMin = 1000;
const giveBackMsMax = 60_000;
const expiryIntervalMs = 60_000;
/** How soon messages are found that other nodes have taken in. */
const pollMs = 1000;

/** Delivers the messages of queues that have a worker as their consumer: one lane for each. */
export class QueueDispatcher {
  readonly #queues: Queues;
  readonly #messages: QueueMessages;
  readonly #deliver: Deliver;
  readonly #logger: Logger;
  readonly #isShared: boolean;
  #lanes = new Map<number, Lane>();
  #poll: NodeJS.Timeout | undefined;
  #expiry: NodeJS.Timeout | undefined;
  #isRunning = false;

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
    messages.onArrival((queueNumber) => this.#lanes.get(queueNumber)?.wake());
  }

  async start(): Promise<void> {
    await this.#messages.recover();
    this.#isRunning = true;
    this.#update();
    if (this.#isShared) {
      this.#poll = setInterval(() => void this.#wakeAvailable(), pollMs);
      this.#poll.unref();
    }
    this.#expiry = setInterval(() => {
      this.#messages.expire().then(
        (count) => count > 0 && this.#logger.warn({ count }, "queued messages expired undelivered"),
        (error: unknown) => this.#logger.warn({ err: error }, "expiring queued messages failed"),
      );
    }, expiryIntervalMs);
    this.#expiry.unref();
  }

  /** Takes no more messages, and waits for the batches under way. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    clearInterval(this.#poll);
    clearInterval(this.#expiry);
    const lanes = [...this.#lanes.values()];
    this.#lanes.clear();
    await Promise.all(lanes.map(async (lane) => lane.stop()));
  }

  /** Other nodes send to the same queues, and do not say so. */
  async #wakeAvailable(): Promise<void> {
    if (this.#lanes.size === 0) return;
    try {
      for (const number of await this.#messages.available()) this.#lanes.get(number)?.wake();
    } catch (error) {
      this.#logger.warn({ err: error }, "looking for queued messages failed");
    }
  }

  #update(): void {
    if (!this.#isRunning) return;
    const before = this.#lanes;
    this.#lanes = new Map();
    for (const queue of this.#queues.all()) {
      if (queue.consumer?.type !== "worker") continue;
      const lane = before.get(queue.number) ?? new Lane(this.#messages, this.#deliver, this.#logger);
      before.delete(queue.number);
      this.#lanes.set(queue.number, lane);
      lane.follow(queue);
    }
    for (const lane of before.values()) void lane.stop();
  }
}

/** Delivers one queue's messages in batches. */
class Lane {
  readonly #messages: QueueMessages;
  readonly #deliver: Deliver;
  readonly #logger: Logger;
  readonly #underWay = new Set<Promise<void>>();
  #queue: Queue | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;
  #looksAgain = false;
  /** Deliveries that failed one after another. */
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
    clearTimeout(this.#timer);
    await Promise.allSettled(this.#underWay);
  }

  /** Looks for messages now, and again if it is asked to while it does. */
  wake(): void {
    this.#looksAgain = true;
    if (!this.#isLooking) void this.#lookWhileAsked();
  }

  async #lookWhileAsked(): Promise<void> {
    this.#isLooking = true;
    clearTimeout(this.#timer);
    let waitMs: number | undefined;
    while (this.#looksAgain) {
      this.#looksAgain = false;
      try {
        waitMs = await this.#look();
      } catch (error) {
        this.#logger.warn({ err: error, queue: this.#queue?.name }, "looking for queued messages failed");
        waitMs = giveBackMsMin;
      }
    }
    this.#isLooking = false;
    if (this.#queue !== undefined && waitMs !== undefined) this.#wakeAfter(waitMs);
  }

  #wakeAfter(waitMs: number): void {
    this.#timer = setTimeout(() => this.wake(), Math.min(waitMs, 2 ** 31 - 1));
    this.#timer.unref();
  }

  /** Starts what may be delivered now. Answers with the time until there may be more; undefined where only a wake will tell. */
  async #look(): Promise<number | undefined> {
    for (;;) {
      const queue = this.#queue;
      const consumer = queue?.consumer;
      if (queue === undefined || consumer === undefined || queue.settings.isDeliveryPaused) return undefined;
      const { batchSize, maxWaitTimeMs, maxConcurrency } = consumer.settings;
      // A batch that ends wakes the lane.
      if (this.#underWay.size >= (maxConcurrency ?? concurrencyDefault)) return undefined;
      const upcoming = await this.#messages.upcoming(queue, batchSize);
      const first = upcoming[0];
      if (first === undefined) return undefined;
      const now = Date.now();
      const isFull = upcoming.length === batchSize && upcoming.at(-1)! <= now;
      const dueOn = isFull ? now : first + maxWaitTimeMs;
      if (dueOn > now) {
        // A batch may fill up before it is due, by messages that become available later.
        const next = upcoming.find((availableOn) => availableOn > now);
        return Math.min(dueOn, next ?? dueOn) - now;
      }
      const { lease, messages } = await this.#messages.claim(queue, batchSize, leaseMs);
      if (messages.length === 0) continue;
      const delivery = this.#run(queue, consumer.scriptName!, lease, messages).finally(() => {
        this.#underWay.delete(delivery);
        this.wake();
      });
      this.#underWay.add(delivery);
    }
  }

  async #run(queue: Queue, scriptName: string, lease: string, messages: readonly Message[]): Promise<void> {
    const log = { queue: queue.name, script: scriptName, messages: messages.length };
    const renewal = setInterval(() => {
      this.#messages
        .extend(lease, leaseMs)
        .catch((error: unknown) => this.#logger.warn({ err: error, ...log }, "renewing a lease failed"));
    }, leaseMs / 3);
    try {
      const result = await this.#deliver({ queue, scriptName, messages });
      this.#failures = 0;
      const retryDelay = queue.consumer?.settings.retryDelay ?? 0;
      await this.#messages.settle(queue, lease, settlement(messages, result, retryDelay));
    } catch (error) {
      this.#failures += 1;
      const delayMs = Math.min(giveBackMsMin * 2 ** (this.#failures - 1), giveBackMsMax);
      this.#logger.warn({ err: error, ...log, delay_ms: delayMs }, "a batch could not be delivered");
      await this.#messages.giveBack(queue, lease, messages, delayMs).catch((failure: unknown) => {
        // They come back when the lease ends.
        this.#logger.warn({ err: failure, ...log }, "a batch could not be given back");
      });
    } finally {
      clearInterval(renewal);
    }
  }
}

/** What was said of one message counts before what was said of the batch; a handler that failed has said "again". */
export function settlement(
  messages: readonly Message[],
  result: BatchResult,
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
