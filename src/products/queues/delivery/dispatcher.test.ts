import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { describeStorage } from "../../../../test/helpers/storage-matrix.ts";
import { Accounts } from "../../../control/accounts/accounts.ts";
import { createLogger } from "../../../platform/observability/logger.ts";
import type { Storage } from "../../../platform/storage/storage.ts";
import { setTime } from "../../../platform/timers/clock.ts";
import { clockMoved } from "../../../platform/timers/run-at.ts";
import { QueueDispatcher, type MessageBatch, type MessageBatchResult } from "./dispatcher.ts";
import { QueueMessages } from "../messages.ts";
import type { ConsumerSettings, Queue } from "../queue.ts";
import { Queues } from "../queues.ts";

const done: MessageBatchResult = {
  hasFailed: false,
  ackAll: false,
  retryBatch: { retry: false },
  explicitAcks: [],
  retryMessages: [],
};
const failed: MessageBatchResult = { ...done, hasFailed: true };
const anyScript = { find: () => ({}) as never, onDelete: () => {}, lock: async () => {} };

describeStorage("queues", (open) => {
  let storage: Storage;
  let queues: Queues;
  let messages: QueueMessages;
  let dispatcher: QueueDispatcher;
  let accountId: string;
  let batches: MessageBatch[];
  /** The consumer's handler. */
  let consume: (batch: MessageBatch) => MessageBatchResult | Promise<MessageBatchResult>;

  beforeEach(async () => {
    storage = await open();
    const accounts = new Accounts(storage);
    const user = await accounts.createUser({ email: "owner@example.com", apiKeyHash: null });
    ({ id: accountId } = await accounts.create({ name: "a", type: "enterprise", ownerUserId: user.id }));
    queues = new Queues(storage, anyScript);
    messages = new QueueMessages(storage, queues);
    batches = [];
    consume = () => done;
    dispatcher = node();
    await dispatcher.start();
  });
  afterEach(async () => {
    await dispatcher.stop();
    await storage.close();
  });

  function node(): QueueDispatcher {
    const deliver = async (batch: MessageBatch): Promise<MessageBatchResult> => {
      batches.push(batch);
      return consume(batch);
    };
    return new QueueDispatcher(queues, messages, deliver, createLogger("error"), { isShared: true });
  }

  async function consumed(
    settings: Partial<ConsumerSettings> = {},
    deadLetterQueue: string | null = null,
  ): Promise<Queue> {
    const { id } = await queues.create(accountId, "jobs");
    await queues.createConsumer(accountId, id, {
      type: "worker",
      scriptName: "worker",
      deadLetterQueue,
      settings: { maxWaitTimeMs: 0, ...settings },
    });
    return queues.get(accountId, id);
  }
  const send = async (queue: Queue, ...bodies: string[]): Promise<void> =>
    messages.send(
      queue,
      bodies.map((body) => ({ contentType: "text", body: Buffer.from(body) })),
    );
  const delivered = (): string[][] =>
    batches.map((batch) => batch.messages.map(({ body }) => Buffer.from(body).toString()));
  const until = (check: () => unknown): Promise<void> =>
    vi.waitFor(async () => expect(await check()).toBe(true), { interval: 10 });
  const isEmpty = (queue: Queue) => async () => (await messages.backlog(queue)).count === 0;

  it("a stopping node leases nothing more, and returns what it cannot deliver in time", async () => {
    const queue = await consumed();
    const { promise, resolve } = Promise.withResolvers<MessageBatchResult>();
    consume = () => promise;
    await send(queue, "a");
    await vi.waitFor(() => expect(delivered()).toEqual([["a"]]));
    dispatcher.stopClaiming();
    await send(queue, "b");
    await dispatcher.giveBack();
    const other = node();
    consume = () => done;
    await other.start();
    await vi.waitFor(() => expect(delivered().flat().toSorted()).toEqual(["a", "a", "b"]));
    const attempts = batches.flatMap((batch) => batch.messages.map((message) => message.attempts));
    expect(attempts.toSorted((a, b) => a - b)).toEqual([1, 1, 2]);
    // The late end of the first delivery changes nothing.
    resolve(failed);
    await dispatcher.stop();
    await other.stop();
    expect((await messages.backlog(queue)).count).toBe(0);
  });

  it("delivers batches of at most the configured size, and deletes acknowledged messages", async () => {
    const queue = await consumed({ batchSize: 2 });
    await send(queue, "a", "b", "c");
    await until(isEmpty(queue));
    expect(delivered().flat().toSorted()).toEqual(["a", "b", "c"]);
    expect(Math.max(...delivered().map(({ length }) => length))).toBe(2);
    expect(batches[0]).toMatchObject({ scriptName: "worker", queue: { name: "jobs" } });
  });

  it("waits for a batch to fill up, for at most the configured time", async () => {
    const queue = await consumed({ batchSize: 2, maxWaitTimeMs: 60_000 });
    await send(queue, "a");
    await send(queue, "b");
    await until(isEmpty(queue));
    expect(delivered()).toEqual([["a", "b"]]);
    await queues.updateConsumer(accountId, queue.id, queue.consumer!.id, {
      ...queue.consumer!,
      settings: { batchSize: 2, maxWaitTimeMs: 50 },
    });
    await send(queue, "c");
    await until(isEmpty(queue));
    expect(delivered()).toEqual([["a", "b"], ["c"]]);
  });

  it("retries failed messages, then moves them to the dead letter queue", async () => {
    const dead = await queues.create(accountId, "dead");
    const queue = await consumed({ maxRetries: 2 }, "dead");
    consume = () => failed;
    await send(queue, "poison");
    await until(async () => (await messages.backlog(dead)).count === 1);
    expect(batches.map((batch) => batch.messages[0]!.attempts)).toEqual([1, 2, 3]);
    expect(await isEmpty(queue)()).toBe(true);
    const [letter] = await messages.peek(dead, 1);
    expect([Buffer.from(letter!.body).toString(), letter!.attempts]).toEqual(["poison", 0]);
  });

  it("drops messages after the last retry when there is no dead letter queue", async () => {
    const queue = await consumed({ maxRetries: 0 });
    consume = () => failed;
    await send(queue, "poison");
    await until(isEmpty(queue));
    expect(batches).toHaveLength(1);
  });

  it("follows the handler's decision for each message", async () => {
    const queue = await consumed({ batchSize: 10 });
    const isFirst = (): boolean => batches.length === 1;
    consume = ({ messages: [a, b] }) =>
      isFirst()
        ? { ...done, explicitAcks: [a!.id], retryMessages: [{ msgId: b!.id }], retryBatch: { retry: true } }
        : done;
    await send(queue, "a", "b", "c");
    await until(isEmpty(queue));
    expect(delivered()).toEqual([
      ["a", "b", "c"],
      ["b", "c"],
    ]);
  });

  it("delivers a delayed message after its delay, and not before", async () => {
    const queue = await consumed();
    let nowMs = Date.now();
    setTime(() => nowMs);
    onTestFinished(() => setTime());
    const clockMoves = (ms: number): void => {
      nowMs += ms;
      clockMoved();
    };
    await messages.send(queue, [{ contentType: "text", body: Buffer.from("later"), delaySeconds: 60 }]);
    for (const [body, ms] of [
      ["now", 0],
      ["before", 59_999],
    ] as const) {
      clockMoves(ms);
      await send(queue, body);
      await until(() => delivered().flat().includes(body));
    }
    clockMoves(1);
    await until(isEmpty(queue));
    expect(delivered()).toEqual([["now"], ["before"], ["later"]]);
  });

  it("returns undeliverable messages without counting an attempt", async () => {
    const queue = await consumed({ maxRetries: 0 });
    consume = () => {
      if (batches.length === 1) throw new Error("the cell is gone");
      return done;
    };
    await send(queue, "a");
    await until(isEmpty(queue));
    expect(batches.map((batch) => batch.messages[0]!.attempts)).toEqual([1, 1]);
  });

  it("delivers nothing while delivery is paused", async () => {
    const queue = await consumed();
    await queues.update(accountId, queue.id, { settings: { isDeliveryPaused: true } });
    await send(queue, "a");
    await queues.update(accountId, queue.id, { settings: { isDeliveryPaused: false } });
    await until(isEmpty(queue));
    expect(delivered()).toEqual([["a"]]);
  });

  it("runs as many concurrent batches as configured", async () => {
    const queue = await consumed({ batchSize: 1, maxConcurrency: 2 });
    let [running, most] = [0, 0];
    consume = async () => {
      running += 1;
      most = Math.max(most, running);
      await until(() => running === 2 || batches.length === 5);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      return done;
    };
    await send(queue, "a", "b", "c", "d", "e");
    await until(isEmpty(queue));
    expect([most, batches.length]).toEqual([2, 5]);
  });

  it("gives a message to one node only", async () => {
    const queue = await consumed({ batchSize: 3 });
    const other = node();
    await other.start();
    const bodies = Array.from({ length: 60 }, (_, i) => String(i));
    await Promise.all(bodies.map(async (body) => send(queue, body)));
    await until(isEmpty(queue));
    await other.stop();
    expect(delivered().flat().toSorted()).toEqual(bodies.toSorted());
  });

  it("finds messages that another node has accepted", async () => {
    const queue = await consumed();
    const elsewhere = new QueueMessages(storage, queues);
    await elsewhere.send(queue, [{ contentType: "text", body: Buffer.from("from afar") }]);
    await until(isEmpty(queue));
    expect(delivered()).toEqual([["from afar"]]);
  });

  it("drops messages after their retention", async () => {
    const { id } = await queues.create(accountId, "jobs", { retentionSeconds: 0 });
    const queue = queues.get(accountId, id);
    await send(queue, "a");
    await until(async () => (await messages.expire()) === 1);
    expect(await isEmpty(queue)()).toBe(true);
  });

  it("deleting a queue deletes its messages, also leased ones, and stops its consumer", async () => {
    const queue = await consumed({ batchSize: 1, maxConcurrency: 1 });
    let end = (): void => {};
    const ending = new Promise<void>((resolve) => (end = resolve));
    consume = async () => ending.then(() => ({ ...done, hasFailed: true }));
    const bodies = Array.from({ length: 100 }, (_, i) => String(i));
    for (let i = 0; i < 21; i++) await send(queue, ...bodies);
    await until(() => batches.length === 1);
    await messages.purge(queue);
    expect(await isEmpty(queue)()).toBe(true);
    await queues.delete(accountId, queue.id);
    end();
    await dispatcher.stop();
    expect(batches).toHaveLength(1);
    expect(queues.list(accountId)).toEqual([]);
  });

  it("refuses a queue as its own dead letter queue", async () => {
    await expect(consumed({}, "jobs")).rejects.toMatchObject({ kind: "queues.ownDeadLetters" });
  });

  it("leases pulled messages until the caller acknowledges or returns them", async () => {
    const { id } = await queues.create(accountId, "pulled");
    await queues.createConsumer(accountId, id, {
      type: "http_pull",
      scriptName: null,
      deadLetterQueue: null,
      settings: { maxRetries: 1 },
    });
    const queue = queues.get(accountId, id);
    await send(queue, "a", "b");
    const first = await messages.pull(queue, 10, 60_000);
    expect(first.messages).toHaveLength(2);
    expect((await messages.pull(queue, 10, 60_000)).messages).toEqual([]);
    const [a, b] = first.messages;
    const retry = { number: b!.number, attempts: 0, delaySeconds: 0 };
    const settled = await messages.settle(queue, first.lease, { acks: [a!.number], retries: [retry] });
    expect(settled.size).toBe(2);
    // This is the last allowed delivery; an expired lease counts as one.
    const second = await messages.pull(queue, 10, 0);
    expect(second.messages.map(({ attempts }) => attempts)).toEqual([2]);
    expect(await messages.settle(queue, first.lease, { acks: [b!.number], retries: [] })).toEqual(new Set());
    expect((await messages.pull(queue, 10, 60_000)).messages).toEqual([]);
    expect(await isEmpty(queue)()).toBe(true);
  });
});
