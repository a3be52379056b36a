import { randomUUID } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { TraceContext } from "../../platform/tracing/spans/trace-context.ts";
import { entriesMax } from "../../platform/util/loading-cache.ts";
import { isForeignKeyViolation } from "../../platform/storage/dialects.ts";
import type { Read, Storage } from "../../platform/storage/storage.ts";
import { newId } from "../../platform/util/ids.ts";
import { queueErrors } from "./errors.ts";
import { queueLimits, type QueueMessage, type OutgoingMessage, type Queue } from "./queue.ts";
import type { Queues } from "./queues.ts";
import * as store from "./store-messages.ts";
import { clock } from "../../platform/timers/clock.ts";

/** The outcome of messages that were delivered together. */
export interface Settlement {
  acks: number[];
  /** Missing attempts are looked up. */
  retries: { number: number; attempts?: number; delaySeconds: number }[];
}

/** Prefix of dispatchers' leases; leases of pulls have none. */
const dispatchPrefix = "d-";
const sendersMax = 10_000;
const removedAtOnce = 1000;
const retiredAtOnce = 100;

/** The messages of queues: durable before they are acknowledged, and leased to one consumer at a time. */
export class QueueMessages {
  readonly #storage: Storage;
  readonly #queues: Queues;
  readonly #listeners: ((queueNumber: number) => void)[] = [];
  /** Number of messages that were removed when their retention was over. */
  expired = 0;
  readonly #lastLeaseListeners: ((queueNumber: number, endsOn: number) => void)[] = [];
  readonly #backlogs = new Map<number, { backlog: store.Backlog; validUntil: number }>();

  /** Spans that sent messages, by the messages' ids. */
  readonly #senders = new LRUCache<string, TraceContext>(entriesMax(sendersMax));

  constructor(storage: Storage, queues: Queues) {
    this.#storage = storage;
    this.#queues = queues;
    queues.onChange(() => {
      const numbers = new Set(Array.from(queues.all(), ({ number }) => number));
      for (const number of [...this.#backlogs.keys()])
        if (!numbers.has(number)) this.#backlogs.delete(number);
    });
  }

  /** Called when messages of a queue become available, now or later, through this process. */
  onArrival(listener: (queueNumber: number) => void): void {
    this.#listeners.push(listener);
  }

  /** Called when messages on their last delivery were leased to a pull, or that lease was extended. */
  onLastLease(listener: (queueNumber: number, endsOn: number) => void): void {
    this.#lastLeaseListeners.push(listener);
  }

  /** The backlogs of all queues that have messages. */
  async allBacklogs(): Promise<{ queueNumber: number; count: number; oldestOn: number }[]> {
    return store.backlogs(this.#storage.read);
  }

  /** Sends messages, all or none. They are durable once it resolves. */
  async send(
    queue: Queue,
    messages: readonly OutgoingMessage[],
    delaySeconds?: number,
    span?: TraceContext,
  ): Promise<void> {
    checkBatch(messages);
    const now = clock.now();
    const rows = messages.map((message) => ({
      id: newId(),
      contentType: message.contentType,
      body: message.body,
      availableOn: now + (message.delaySeconds ?? delaySeconds ?? queue.settings.deliveryDelay) * 1000,
    }));
    await this.#storage
      .write(async (trx) => store.insert(trx, queue.number, rows, now))
      .catch((error: unknown) => {
        throw isForeignKeyViolation(error) ? queueErrors.notFound(queue.name) : error;
      });
    if (span?.isSampled === true) for (const { id } of rows) this.#senders.set(id, span);
    this.#arrived(queue.number);
  }

  /** The span that sent the first of these messages, if it was sent to this node lately. */
  senderOf(messages: readonly { id: string }[]): TraceContext | undefined {
    return this.#senders.get(messages[0]?.id ?? "");
  }

  /** Leases messages to a dispatcher of this process. */
  async claim(
    queue: Queue,
    limit: number,
    leaseMs: number,
  ): Promise<{ lease: string; messages: QueueMessage[] }> {
    return this.#claim(queue, `${dispatchPrefix}${randomUUID()}`, limit, leaseMs);
  }

  /** Leases messages to a pull. Messages without deliveries left are retired first. */
  async pull(
    queue: Queue,
    limit: number,
    visibilityTimeoutMs: number,
  ): Promise<{ lease: string; messages: QueueMessage[] }> {
    const endsOn = clock.now() + visibilityTimeoutMs;
    const claimed = await this.#claim(queue, `p-${randomUUID()}`, limit, visibilityTimeoutMs);
    const maxRetries = maxRetriesOf(queue);
    if (claimed.messages.some(({ attempts }) => attempts > maxRetries)) this.#lastLease(queue, endsOn);
    return claimed;
  }

  async extend(lease: string, leaseMs: number, numbers?: readonly number[]): Promise<number[]> {
    return this.#storage.write(async (trx) => store.extend(trx, lease, clock.now() + leaseMs, numbers));
  }

  /** Extends the lease of pulled messages. */
  async extendPulled(
    queue: Queue,
    lease: string,
    leaseMs: number,
    numbers: readonly number[],
  ): Promise<number[]> {
    const endsOn = clock.now() + leaseMs;
    const extended = await this.extend(lease, leaseMs, numbers);
    if (extended.length > 0) this.#lastLease(queue, endsOn);
    return extended;
  }

  /** Retires messages whose last lease expired, and returns their count. */
  async retire(queue: Queue): Promise<number> {
    const maxRetries = maxRetriesOf(queue);
    if (queue.consumer?.type !== "http_pull") return 0;
    for (let total = 0; ;) {
      const now = clock.now();
      const find = async (read: Read): ReturnType<typeof store.exhausted> =>
        store.exhausted(read, queue.number, maxRetries, now, retiredAtOnce);
      if ((await find(this.#storage.read)).length === 0) return total;
      const moved = await this.#storage.write(async (trx) => {
        const found = await find(trx);
        let count = 0;
        for (const [lease, messages] of Map.groupBy(found, (each) => each.lease)) {
          const numbers = messages.map(({ number }) => number);
          count += (await this.#putAway(trx, queue, lease, numbers, now)).length;
        }
        return count;
      });
      total += moved;
      if (moved < retiredAtOnce) return total;
    }
  }

  /** Deletes acknowledged messages, returns those to retry, and retires those without retries left. */
  async settle(queue: Queue, lease: string, { acks, retries }: Settlement): Promise<Set<number>> {
    const now = clock.now();
    const maxRetries = maxRetriesOf(queue);
    const unknown = retries.flatMap(({ number, attempts }) => (attempts === undefined ? [number] : []));
    const again = new Map<number, number[]>();
    const settled = await this.#storage.write(async (trx) => {
      const attemptsOf = await store.attemptsOf(trx, lease, unknown);
      const failed: number[] = [];
      again.clear();
      for (const { number, attempts = attemptsOf.get(number) ?? 0, delaySeconds } of retries) {
        if (attempts > maxRetries) failed.push(number);
        else again.set(delaySeconds, [...(again.get(delaySeconds) ?? []), number]);
      }
      const done = await store.acknowledge(trx, lease, acks);
      for (const [delaySeconds, numbers] of again)
        done.push(...(await store.release(trx, lease, numbers, now + delaySeconds * 1000)));
      done.push(...(await this.#putAway(trx, queue, lease, failed, now)));
      return new Set(done);
    });
    if (again.size > 0) this.#arrived(queue.number);
    return settled;
  }

  /** Returns messages. Their delivery counts as an attempt only if it may have begun. */
  async giveBack(
    queue: Queue,
    lease: string,
    messages: readonly QueueMessage[],
    { delayMs, isAttempt = false }: { delayMs: number; isAttempt?: boolean },
  ): Promise<void> {
    const numbers = messages.map(({ number }) => number);
    const availableOn = clock.now() + delayMs;
    await this.#storage.write(async (trx) =>
      store.release(trx, lease, numbers, availableOn, isAttempt ? 0 : -1),
    );
    this.#arrived(queue.number);
  }

  /** When the next messages become available, soonest first. */
  async upcoming(queue: Queue, limit: number): Promise<number[]> {
    return store.upcoming(this.#storage.read, queue.number, limit);
  }

  /** Numbers of the queues with available messages. */
  async available(): Promise<number[]> {
    return store.available(this.#storage.read, clock.now());
  }

  async backlog(queue: Queue): Promise<store.Backlog> {
    return store.backlog(this.#storage.read, queue.number);
  }

  /**
   * For frequent callers: counting a long queue is slow, so the count is cached in proportion to its cost.
   */
  async backlogEstimate(queue: Queue): Promise<store.Backlog> {
    const known = this.#backlogs.get(queue.number);
    if (known !== undefined && known.validUntil > performance.now()) return known.backlog;
    const startedAt = performance.now();
    const backlog = await this.backlog(queue);
    const tookMs = performance.now() - startedAt;
    this.#backlogs.set(queue.number, { backlog, validUntil: startedAt + 50 * tookMs });
    return backlog;
  }

  async peek(queue: Queue, limit: number): Promise<QueueMessage[]> {
    return store.peek(this.#storage.read, queue.number, limit);
  }

  async remove(queue: Queue, numbers: readonly number[]): Promise<Set<number>> {
    return new Set(await this.#storage.write(async (trx) => store.removeNumbers(trx, queue.number, numbers)));
  }

  /** Deletes all messages sent until now. */
  async purge(queue: Queue): Promise<void> {
    await this.#removeSent(queue.number, clock.now() + 1);
  }

  /** Deletes messages whose retention is over. */
  async expire(): Promise<number> {
    let expired = 0;
    for (const { number, settings } of this.#queues.all()) {
      const sentBefore = clock.now() - settings.retentionSeconds * 1000;
      if (await store.hasSentBefore(this.#storage.read, number, sentBefore))
        expired += await this.#removeSent(number, sentBefore);
    }
    this.expired += expired;
    return expired;
  }

  /** In batches, because all other queries wait while a statement runs. */
  async #removeSent(queueNumber: number, sentBefore: number): Promise<number> {
    for (let total = 0; ;) {
      const removed = await this.#storage.write(async (trx) =>
        store.removeSent(trx, queueNumber, sentBefore, removedAtOnce),
      );
      total += removed;
      if (removed < removedAtOnce) return total;
    }
  }

  /** Called at the start of the only process on this database: leases of its predecessor are void. */
  async recover(): Promise<void> {
    if (this.#storage.engine === "sqlite")
      await this.#storage.write(async (trx) => store.releaseLeases(trx, dispatchPrefix, clock.now()));
  }

  async #claim(
    queue: Queue,
    lease: string,
    limit: number,
    leaseMs: number,
  ): Promise<{ lease: string; messages: QueueMessage[] }> {
    const now = clock.now();
    const maxRetries = maxRetriesOf(queue);
    const messages = await this.#storage.write(async (trx) => {
      const claimed = await store.claim(trx, this.#storage.engine, {
        queueNumber: queue.number,
        limit,
        lease,
        now,
        until: now + leaseMs,
      });
      // Expired leases count as attempts.
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

  /** Moves messages to the dead letter queue, or deletes them. */
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

  #lastLease(queue: Queue, endsOn: number): void {
    for (const listener of this.#lastLeaseListeners) listener(queue.number, endsOn);
  }

  #arrived(queueNumber: number): void {
    for (const listener of this.#listeners) listener(queueNumber);
  }
}

const maxRetriesOf = ({ consumer }: Queue): number =>
  consumer?.settings.maxRetries ?? Number.POSITIVE_INFINITY;

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
