import type { Logger } from "pino";
import type { Storage } from "../../../platform/storage/storage.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";
import { writeAlarms, type StoredAlarm } from "./alarm-store.ts";

type Batch = Map<string, { namespace: string; id: string; alarm: StoredAlarm | undefined }>;

/** Delay before changes without a waiting caller are written. */
const lazyMs = 500;

/** Writes the times of alarms. Changes during one transaction are written together in the next one. */
export class AlarmWrites {
  readonly #storage: Storage;
  readonly #logger: Logger;
  #batch: Batch = new Map();
  /** The changes of the transaction that is under way. */
  #underWay: Batch = new Map();
  #current: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(storage: Storage, logger: Logger) {
    this.#storage = storage;
    this.#logger = logger;
  }

  /** Writes or removes an alarm soon, or with the next `write`. */
  note(namespace: string, id: string, alarm: StoredAlarm | undefined): void {
    this.#batch.set(`${namespace} ${id}`, { namespace, id, alarm });
    this.#timer ??= setTimeout(() => this.#writeLazily(), lazyMs).unref();
  }

  /** Drops the changes that are not written yet: of namespaces, or all. A transaction that fails is not repeated with them. */
  clear(isIn: (namespace: string) => boolean = () => true): void {
    for (const changes of [this.#batch, this.#underWay])
      for (const [key, { namespace }] of changes) if (isIn(namespace)) changes.delete(key);
  }

  /** Resolves when all changes so far are on disk. */
  async write(): Promise<void> {
    this.#next ??= this.#writeAfter(this.#current);
    await this.#next;
  }

  async #writeAfter(before: Promise<void>): Promise<void> {
    await before.catch(() => {});
    this.#next = undefined;
    this.#current = this.#writeBatch();
    await this.#current;
  }

  #writeLazily(): void {
    this.#timer = undefined;
    unawaited(
      this.write().catch((error: unknown) => {
        this.#logger.warn({ err: error }, "times of alarms could not be stored; trying again");
        this.#timer ??= setTimeout(() => this.#writeLazily(), lazyMs).unref();
      }),
    );
  }

  async #writeBatch(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#batch;
    if (batch.size === 0) return;
    this.#batch = new Map();
    this.#underWay = batch;
    try {
      await writeAlarms(this.#storage, batch);
    } catch (error) {
      for (const [key, each] of batch) if (!this.#batch.has(key)) this.#batch.set(key, each);
      throw error;
    } finally {
      this.#underWay = new Map();
    }
  }
}
