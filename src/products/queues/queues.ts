import type { DomainError } from "../../platform/domain-error.ts";
import type { Scripts } from "../../workers/scripts/scripts.ts";
import { isUniqueViolation } from "../../platform/storage/dialects.ts";
import { FreshReads } from "../../platform/storage/changes/fresh-reads.ts";
import type { Storage, Write } from "../../platform/storage/storage.ts";
import { newId } from "../../platform/util/ids.ts";
import { queueErrors } from "./errors.ts";
import {
  consumerDefaults,
  queueDefaults,
  queueLimits,
  type Consumer,
  type ConsumerSettings,
  type Queue,
  type QueueSettings,
} from "./queue.ts";
import * as store from "./store.ts";
import { clock } from "../../platform/timers/clock.ts";

export interface ConsumerInput {
  type: Consumer["type"];
  scriptName: string | null;
  deadLetterQueue: string | null;
  settings: Partial<ConsumerSettings>;
}

/** The queues of all accounts with their consumers, in memory. */
export class Queues {
  readonly #storage: Storage;
  readonly #scripts: Pick<Scripts, "find" | "lock" | "onDelete">;
  readonly #reads: FreshReads<Queue[]>;
  readonly #listeners: (() => void)[] = [];
  #byId = new Map<string, Queue>();
  #byName = new Map<string, Queue>();

  constructor(storage: Storage, scripts: Pick<Scripts, "find" | "lock" | "onDelete">) {
    this.#storage = storage;
    this.#scripts = scripts;
    scripts.onDelete(async (trx, { accountId, namespaceId, name }, changed) => {
      if (namespaceId !== null) return;
      // Queries the database, because another node may have just added a consumer.
      for (const id of await store.removeConsumersOf(trx, accountId, name))
        changed({ kind: "queue", id, parentId: accountId });
    });
    this.#reads = new FreshReads(
      () => store.loadAll(storage.read),
      (all) => this.#replaceAll(all),
    );
    storage.onChange(async (changes) => {
      if (changes.some(({ kind }) => kind === "queue" || kind === "account")) await this.load();
    }, this.#reads.reload);
  }

  async load(): Promise<void> {
    await this.#reads.load();
  }

  #replaceAll(all: readonly Queue[]): void {
    this.#byId = new Map(all.map((queue) => [queue.id, queue]));
    this.#byName = new Map(all.map((queue) => [nameKey(queue.accountId, queue.name), queue]));
    for (const listener of this.#listeners) listener();
  }

  /** Called after each change to queues or consumers. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  all(): Iterable<Queue> {
    return this.#byId.values();
  }

  list(accountId: string): Queue[] {
    return [...this.#byId.values()].filter((queue) => queue.accountId === accountId);
  }

  findByName(accountId: string, name: string): Queue | undefined {
    return this.#byName.get(nameKey(accountId, name));
  }

  get(accountId: string, id: string): Queue {
    const queue = this.#byId.get(id);
    if (queue?.accountId !== accountId) throw queueErrors.notFound(id);
    return queue;
  }

  async create(accountId: string, name: string, settings: Partial<QueueSettings> = {}): Promise<Queue> {
    if (this.list(accountId).length >= queueLimits.queuesOfAccount) throw queueErrors.tooMany();
    const id = newId();
    const queue = {
      id,
      accountId,
      name,
      settings: { ...queueDefaults, ...settings },
      createdOn: clock.now(),
    };
    await this.#write(accountId, id, queueErrors.exists(name), async (trx) => store.insert(trx, queue));
    return this.get(accountId, id);
  }

  async update(
    accountId: string,
    id: string,
    change: {
      name?: string | undefined;
      settings?: Partial<QueueSettings> | undefined;
      /** Fields that are not given return to their defaults. */
      replace?: boolean;
    },
  ): Promise<Queue> {
    const queue = this.get(accountId, id);
    const name = change.name ?? queue.name;
    const before = change.replace === true ? queueDefaults : queue.settings;
    const settings = { ...before, ...change.settings };
    await this.#write(accountId, id, queueErrors.exists(name), async (trx) =>
      store.update(trx, { id, name, settings, modifiedOn: clock.now() }),
    );
    return this.get(accountId, id);
  }

  async delete(accountId: string, id: string): Promise<void> {
    this.get(accountId, id);
    await this.#write(accountId, id, undefined, async (trx) => store.remove(trx, id));
  }

  consumer(accountId: string, queueId: string, consumerId: string): Consumer {
    const { consumer } = this.get(accountId, queueId);
    if (consumer?.id !== consumerId) throw queueErrors.consumerNotFound(consumerId);
    return consumer;
  }

  async createConsumer(accountId: string, queueId: string, input: ConsumerInput): Promise<Consumer> {
    const queue = this.get(accountId, queueId);
    if (queue.consumer !== undefined) throw queueErrors.consumerExists(queue.name);
    return this.#putConsumer(queue, newId(), clock.now(), input);
  }

  async updateConsumer(
    accountId: string,
    queueId: string,
    consumerId: string,
    input: ConsumerInput,
  ): Promise<Consumer> {
    const { createdOn } = this.consumer(accountId, queueId, consumerId);
    return this.#putConsumer(this.get(accountId, queueId), consumerId, createdOn, input);
  }

  async deleteConsumer(accountId: string, queueId: string, consumerId: string): Promise<void> {
    this.consumer(accountId, queueId, consumerId);
    await this.#write(accountId, queueId, undefined, async (trx) => store.removeConsumer(trx, consumerId));
  }

  async #putConsumer(queue: Queue, id: string, createdOn: number, input: ConsumerInput): Promise<Consumer> {
    const { accountId } = queue;
    const { scriptName, deadLetterQueue } = input;
    if (scriptName !== null && this.#scripts.find({ accountId }, scriptName) === undefined)
      throw queueErrors.noScript(scriptName);
    if (deadLetterQueue === queue.name) throw queueErrors.ownDeadLetters(queue.name);
    if (deadLetterQueue !== null && this.findByName(accountId, deadLetterQueue) === undefined)
      throw queueErrors.deadLetterQueue(deadLetterQueue);
    const settings = { ...consumerDefaults, ...input.settings };
    await this.#write(accountId, queue.id, queueErrors.consumerExists(queue.name), async (trx) => {
      if (scriptName !== null) await this.#scripts.lock(trx, { accountId }, scriptName);
      await store.putConsumer(trx, queue.number, { id, createdOn, ...input, settings });
    });
    return this.consumer(accountId, queue.id, id);
  }

  async #write(
    accountId: string,
    id: string,
    conflict: DomainError | undefined,
    work: (trx: Write) => Promise<void>,
  ): Promise<void> {
    try {
      await this.#storage.write(async (trx, changed) => {
        await work(trx);
        changed({ kind: "queue", id, parentId: accountId });
      });
    } catch (error) {
      if (conflict !== undefined && isUniqueViolation(error)) throw conflict;
      throw error;
    }
  }
}

const nameKey = (accountId: string, name: string): string => `${accountId}/${name}`;
