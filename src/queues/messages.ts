import { randomUUID } from "node:crypto";
import type { Storage } from "../storage/storage.ts";
import { newId } from "../util/ids.ts";
import { queueErrors, queueLimits, type Message, type OutgoingMessage, type Queue } from "./queue.ts";
import type { Queues } from "./queues.ts";
import * as store from "./store-messages.ts";

/** What becomes of messages that were delivered together. */
export interface Settlement {
  acks: number[];
  retries: { number: number; attempts: number; delaySeconds: number }[];
}

/** Leases of dispatchers begin with this, those of pulls do not. */
const dispatchPrefix = "d-";
const removedAtOnce = 1000;

/** The messages of queues: kept before they are acknowledged to their sender, leased to one consumer at a time. */
export class QueueMessages {
  readonly #storage: Storage;
  readonly #queues: Queues;
  readonly #listeners: ((queueNumber: number) => void)[] = [];
  readonly #backlogs = new Map<number, { backlog: store.Backlog; validUntil: number }>();

  constructor(storage: Storage, queues: Queues) {
    this.#storage = storage;
    this.#queues = queues;
  }

  /** Called when messages of a queue have become available, or will, in this process. */
  onArrival(listener: (queueNumber: number) => void): void {
    this.#listeners.push(listener);
  }

  /** Sends messages, durably when it resolves. All of them or none. */
  async send(queue: Queue, messages: readonly OutgoingMessage[], delaySeconds?: number): Promise<void> {
    checkBatch(messages);
    const now = Date.now();
    const rows = messages.map((message) => ({
      id: newId(),
      contentType: message.contentType,
      body: message.body,
      availableOn: now + (message.delaySeconds ?? delaySeconds ?? queue.settings.deliveryDelay) * 1000,
    }));
    await this.#storage.write(async (trx) => store.insert(trx, queue.number, rows, now));
    this.#arrived(queue.number);
  }

  /** Leases messages to a dispatcher of this process. */
  async claim(queue: Queue, limit: number, leaseMs: number): Promise<{ lease: string; messages: Message[] }> {
    return this.#claim(queue, `${dispatchPrefix}${randomUUID()}`, limit, leaseMs);
  }

  /** Leases messages to whoever pulls them. Those that were delivered too often are put away first. */
  async pull(
    queue: Queue,
    limit: number,
    visibilityTimeoutMs: number,
  ): Promise<{ lease: string; messages: Message[] }> {
    return this.#claim(queue, `p-${randomUUID()}`, limit, visibilityTimeoutMs);
  }

  async extend(lease: string, leaseMs: number, numbers?: readonly number[]): Promise<number[]> {
    return this.#storage.write(async (trx) => store.extend(trx, lease, Date.now() + leaseMs, numbers));
  }

  /** Removes what is done, gives back what is to be tried again, and puts away what was tried too often. */
  async settle(queue: Queue, lease: string, { acks, retries }: Settlement): Promise<Set<number>> {
    const now = Date.now();
    const maxRetries = queue.consumer?.settings.maxRetries ?? Number.POSITIVE_INFINITY;
    const again = new Map<number, number[]>();
    const failed: number[] = [];
    for (const { number, attempts, delaySeconds } of retries) {
      if (attempts > maxRetries) failed.push(number);
      else again.set(delaySeconds, [...(again.get(delaySeconds) ?? []), number]);
    }
    const settled = await this.#storage.write(async (trx) => {
      const done = await store.acknowledge(trx, lease, acks);
      for (const [delaySeconds, numbers] of again)
        done.push(...(await store.release(trx, lease, numbers, now + delaySeconds * 1000)));
      done.push(...(await this.#putAway(trx, queue, lease, failed, now)));
      return new Set(done);
    });
    if (again.size > 0) this.#arrived(queue.number);
    return settled;
  }

  /** Gives back messages that could not be delivered at all: it does not count as an attempt. */
  async giveBack(queue: Queue, lease: string, messages: readonly Message[], delayMs: number): Promise<void> {
    const numbers = messages.map(({ number }) => number);
    await this.#storage.write(async (trx) => store.release(trx, lease, numbers, Date.now() + delayMs, -1));
    this.#arrived(queue.number);
  }

  /** When the first messages become available, soonest first. */
  async upcoming(queue: Queue, limit: number): Promise<number[]> {
    return store.upcoming(this.#storage.read, queue.number, limit);
  }

  /** Numbers of the queues with messages that may be delivered now. */
  async available(): Promise<number[]> {
    return store.available(this.#storage.read, Date.now());
  }

  async backlog(queue: Queue): Promise<store.Backlog> {
    return store.backlog(this.#storage.read, queue.number);
  }

  /** For those who ask often: counting a long queue takes time, so it is done for a small part of the time. */
  async backlogEstimate(queue: Queue): Promise<store.Backlog> {
    const known = this.#backlogs.get(queue.number);
    if (known !== undefined && known.validUntil > performance.now()) return known.backlog;
    const startedAt = performance.now();
    const backlog = await this.backlog(queue);
    const tookMs = performance.now() - startedAt;
    this.#backlogs.set(queue.number, { backlog, validUntil: startedAt + 50 * tookMs });
    return backlog;
  }

  async peek(queue: Queue, limit: number): Promise<Message[]> {
    return store.peek(this.#storage.read, queue.number, limit);
  }

  async remove(queue: Queue, numbers: readonly number[]): Promise<Set<number>> {
    return new Set(await this.#storage.write(async (trx) => store.removeNumbers(trx, queue.number, numbers)));
  }

  /** Drops all that was sent until now. */
  async purge(queue: Queue): Promise<void> {
    await this.#removeSent(queue.number, Date.now() + 1);
  }

  /** Drops what nobody has taken in time. */
  async expire(): Promise<number> {
    let expired = 0;
    for (const { number, settings } of this.#queues.all()) {
      const sentBefore = Date.now() - settings.retentionSeconds * 1000;
      if (await store.hasSentBefore(this.#storage.read, number, sentBefore))
        expired += await this.#removeSent(number, sentBefore);
    }
    return expired;
  }

  /** Some at a time: everybody else waits while a statement runs. */
  async #removeSent(queueNumber: number, sentBefore: number): Promise<number> {
    for (let total = 0; ;) {
      const removed = await this.#storage.write(async (trx) =>
        store.removeSent(trx, queueNumber, sentBefore, removedAtOnce),
      );
      total += removed;
      if (removed < removedAtOnce) return total;
    }
  }

  /** After a start of the only process on this database: what it was delivering, it is not any more. */
  async recover(): Promise<void> {
    if (this.#storage.engine === "sqlite")
      await this.#storage.write(async (trx) => store.releaseLeases(trx, dispatchPrefix, Date.now()));
  }

  async #claim(
    queue: Queue,
    lease: string,
    limit: number,
    leaseMs: number,
  ): Promise<{ lease: string; messages: Message[] }> {
    const now = Date.now();
    const maxRetries = queue.consumer?.settings.maxRetries ?? Number.POSITIVE_INFINITY;
    const messages = await this.#storage.write(async (trx) => {
      const claimed = await store.claim(trx, this.#storage.engine, {
        queueNumber: queue.number,
        limit,
        lease,
        now,
        until: now + leaseMs,
      });
      // Leases that ended without a word count as attempts too.
      const failed = claimed.filter(({ attempts }) => attempts > maxRetries + 1);
      await this.#putAway(
        trx,
        queue,
        lease,
        failed.map(({ number }) => number),
        now,
      );
      return claimed.filter(({ attempts }) => attempts <= maxRetries + 1);
    });
    return { lease, messages };
  }

  /** To the dead letter queue, or away. */
  async #putAway(
    trx: Parameters<typeof store.move>[0],
    { accountId, consumer }: Queue,
    lease: string,
    numbers: readonly number[],
    now: number,
  ): Promise<number[]> {
    const name = consumer?.deadLetterQueue ?? undefined;
    const deadLetters = name === undefined ? undefined : this.#queues.findByName(accountId, name);
    if (deadLetters === undefined) return store.acknowledge(trx, lease, numbers);
    const moved = await store.move(trx, lease, numbers, deadLetters.number, now);
    if (moved.length > 0) setImmediate(() => this.#arrived(deadLetters.number));
    return moved;
  }

  #arrived(queueNumber: number): void {
    for (const listener of this.#listeners) listener(queueNumber);
  }
}

function checkBatch(messages: readonly OutgoingMessage[]): void {
  const { batchMessages, batchBytes, messageBytes, delaySeconds } = queueLimits;
  if (messages.length === 0 || messages.length > batchMessages)
    throw queueErrors.message(`Expected 1 to ${batchMessages} messages but received ${messages.length}`);
  let total = 0;
  messages.forEach(({ body, delaySeconds: delay = 0 }, index) => {
    total += body.length;
    if (body.length > messageBytes)
      throw queueErrors.message(
        `Expected at most ${messageBytes} bytes in a message but received ${body.length}`,
        index,
      );
    if (!Number.isInteger(delay) || delay < 0 || delay > delaySeconds)
      throw queueErrors.message(
        `Expected a delay of 0 to ${delaySeconds} seconds but received ${delay}`,
        index,
      );
  });
  if (total > batchBytes)
    throw queueErrors.message(`Expected at most ${batchBytes} bytes in a batch but received ${total}`);
}
