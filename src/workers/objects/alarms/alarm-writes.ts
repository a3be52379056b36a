import type { Logger } from "pino";
import type { Storage } from "../../../platform/storage/storage.ts";
import { unawaited } from "../../../platform/util/uncaught.ts";
import {
  NotOwner,
  writeAlarms,
  writeOwnAlarms,
  type AlarmChange,
  type RightTo,
  type StoredAlarm,
} from "./alarm-store.ts";

type Batch = Map<string, AlarmChange>;

/** Delay before changes without a waiting caller are written. */
const lazyMs = 500;

/** Writes the times of alarms. Changes during one transaction are written together in the next one. */
export class AlarmWrites {
  readonly #storage: Storage;
  readonly #logger: Logger;
  readonly #rightTo: RightTo | undefined;
  #batch: Batch = new Map();
  /** The changes of the transaction that is under way. */
  #underWay: Batch = new Map();
  #current: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `rightTo`: of nodes that share the objects. */
  constructor(storage: Storage, logger: Logger, rightTo?: RightTo) {
    this.#storage = storage;
    this.#logger = logger;
    this.#rightTo = rightTo;
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

  /** Resolves when all changes so far are on disk: of a namespace, or all. */
  async write(namespace?: string): Promise<void> {
    this.#next ??= this.#writeAfter(this.#current);
    try {
      await this.#next;
    } catch (error) {
      // Changes of other namespaces are written.
      if (!(error instanceof NotOwner) || namespace === undefined || error.namespaces.has(namespace))
        throw error;
    }
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
      const changes = [...batch.values()];
      if (this.#rightTo === undefined) await writeAlarms(this.#storage, changes);
      else await writeOwnAlarms(this.#storage, changes, this.#rightTo);
    } catch (error) {
      if (error instanceof NotOwner) throw error; // what another node has is dropped, and the rest is written
      for (const [key, each] of batch) if (!this.#batch.has(key)) this.#batch.set(key, each);
      throw error;
    } finally {
      this.#underWay = new Map();
    }
  }
}
