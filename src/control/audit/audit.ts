import { clock } from "../../platform/timers/clock.ts";
import { AsyncLocalStorage } from "node:async_hooks";
import type { Logger } from "pino";
import type { Accounts } from "../accounts/accounts.ts";
import type { Actor } from "../access/actor.ts";
import type { Operation } from "../api/operation.ts";
import { onOneNode } from "../../platform/storage/dialects.ts";
import type { Change, Storage, Write } from "../../platform/storage/storage.ts";
import { unwitnessed } from "../../platform/storage/witness.ts";
import type { Zones } from "../zones/zones.ts";
import { isAudited, isBookkeeping } from "./describe.ts";
import { newEntryId, timeOfEntry } from "./entry-id.ts";
import { beforeJson, entryOfCall, entryOfSystem, foreignChanges, type AuditedCall } from "./entry.ts";
import { networkKey, Refusals } from "./refusals.ts";
import * as store from "./store.ts";

/** State of a call, kept in its asynchronous context and in work that outlives the call. */
interface Context {
  recording: Recording | undefined;
}

/** A call whose entry is part of its first transaction. */
interface Recording {
  operation: Operation;
  call: AuditedCall;
  /** JSON of the resource before the call, unless the handler sets it. */
  before: string | null;
  /** The id of its entry, from the first transaction that tries to insert it. */
  entryId: string | undefined;
  /** The account in whose log its entry is; null if it is in none, or is not written yet. */
  accountId: string | null;
  /** Whether some operation lists the entry. */
  isListed: boolean;
  /** Whether the entry is committed. Until then, each transaction of the call tries to add it. */
  isWritten: boolean;
}

/** A call that was refused. Its actor is absent if the credentials are not valid. */
export type RefusedCall = Omit<AuditedCall, "actor"> & { actor: Actor | undefined };

/** The parts of an entry that the API knows. */
export interface CallReader {
  /** JSON of the resource in its current state; null if there is nothing to read. */
  before: () => Promise<string | null> | null;
  /** The status of the answer to an error of the handler. */
  statusOf: (error: unknown) => number;
}

export interface AuditOptions {
  storage: Storage;
  accounts: Pick<Accounts, "find" | "findUser">;
  zones: Pick<Zones, "find">;
  logger: Logger;
}

const removedAtOnce = 500;
/** On SQLite, the indexes follow after so many entries, which blocks the process for about a millisecond. */
const unindexedMax = 250;
/** Entries in one transaction that writes indexes. After a kill, more may wait than `unindexedMax`. */
const indexedAtOnce = 1000;
/** An id of an entry is committed at most so long after its time, and its transaction. */
const freshMs = 1000;

/**
 * The audit log: who changed what. The entry of a call is written in the call's first transaction, so it
 * exists exactly if the change does. An operation has to do nothing for it.
 */
export class Audit {
  readonly #options: AuditOptions;
  readonly #contexts = new AsyncLocalStorage<Context>();
  readonly #refusals = new Refusals();
  readonly #isKept: boolean;
  readonly #writing = new Set<Promise<void>>();
  /** Entries since the indexes of the last ones were written. */
  #unindexed = 0;
  /** Number of entries that were removed because of their age. */
  removed = 0;
  #indexing: Promise<void> | undefined;
  /** Refused calls since the start, with an entry or without. */
  refusedCount = 0;

  constructor(options: AuditOptions, isKept = true) {
    this.#options = options;
    this.#isKept = isKept;
    if (!isKept) return;
    options.storage.witnessWith({
      add: (trx, changes, result) => this.#add(trx, changes, result),
      committed: () => {
        const recording = this.#contexts.getStore()?.recording;
        if (recording?.entryId !== undefined) recording.isWritten = true;
        this.#indexIfDue();
      },
    });
  }

  /** Runs the handler of a call. If the operation changes something, the call leaves an entry. */
  async perform<T>(
    operation: Operation,
    call: AuditedCall,
    { before, statusOf }: CallReader,
    handle: () => Promise<T>,
  ): Promise<T> {
    if (!this.#isKept || !isAudited(operation, call)) return handle();
    const reading = before();
    const recording: Recording = {
      operation,
      call,
      before: reading === null ? null : await reading,
      entryId: undefined,
      accountId: null,
      isListed: false,
      isWritten: false,
    };
    if (operation.audit === "ahead") await this.#recordAlone(recording);
    const context: Context = { recording };
    try {
      const result = await this.#contexts.run(context, handle);
      // A call that wrote nothing leaves an entry too.
      if (!recording.isWritten) await this.#recordAlone(recording);
      call.isAudited = recording.isWritten && recording.isListed;
      return result;
    } catch (error) {
      // Without a commit there is no entry, and an empty transaction would succeed even on a full disk.
      if (recording.isWritten && recording.entryId !== undefined)
        await this.#noteFailure(
          { account_id: recording.accountId ?? "", id: recording.entryId },
          statusOf(error),
        );
      throw error;
    } finally {
      context.recording = undefined;
    }
  }

  /** Notes that a call was refused: one entry a minute for each actor. Does not wait for it. */
  noteRefusal(operation: Operation, call: RefusedCall, status: number): void {
    this.refusedCount++;
    if (!this.#isKept) return;
    const { actor, account, clientIp } = call;
    // Without an account or a user, no operation would list it.
    if (account === undefined && (actor?.userId ?? null) === null) return;
    const who = `${actor?.id ?? networkKey(clientIp)} ${account?.id ?? ""}`;
    const uncounted = this.#refusals.take(who, actor === undefined);
    if (uncounted === undefined) return;
    const entry = entryOfCall(
      operation,
      call,
      { id: newEntryId(), refusal: { status, uncounted }, before: null, changes: [] },
      this.#options,
    );
    const writing = this.#options.storage
      .write(async (trx) => this.#insert(trx, entry), unwitnessed)
      .then(() => this.#indexIfDue())
      .catch((error: unknown) =>
        this.#options.logger.warn({ err: error }, "a refused call left no audit entry"),
      )
      .finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
  }

  /** Removes entries that are older than the retention, in batches. */
  async removeOld(retentionDays: number, now = clock.now()): Promise<void> {
    const { storage } = this.#options;
    const oldest = now - retentionDays * 86_400_000;
    await this.#index();
    await onOneNode(storage, "audit", async () => {
      for (const id of await store.accountsBefore(storage.read, oldest))
        for (let removed = removedAtOnce; removed === removedAtOnce;) {
          removed = await storage.write(
            async (trx) => store.removeBefore(trx, id, oldest, removedAtOnce),
            unwitnessed,
          );
          this.removed += removed;
        }
    });
  }

  /** Waits for entries that are being written. */
  async close(): Promise<void> {
    await Promise.all(this.#writing);
    await this.#indexing; // it may have begun before the last entries
    // An older version of the program reads only entries with indexes.
    if (this.#isKept && this.#options.storage.engine === "sqlite") this.#indexSoon();
    await this.#indexing;
  }

  #insert(trx: Write, entry: store.AuditEntry): Promise<unknown> | undefined {
    if (this.#options.storage.engine === "postgres") return store.insert(trx, entry);
    this.#unindexed++;
    return store.append(trx, entry);
  }

  #indexIfDue(): void {
    if (this.#unindexed >= unindexedMax) this.#indexSoon();
  }

  #indexSoon(): void {
    this.#indexing ??= this.#index()
      .catch((error: unknown) =>
        this.#options.logger.warn({ err: error }, "the newest audit entries have no index yet"),
      )
      .finally(() => (this.#indexing = undefined));
  }

  async #index(): Promise<void> {
    this.#unindexed = 0;
    const { storage } = this.#options;
    for (let isMore = true; isMore;)
      isMore = await storage.write(async (trx) => store.indexTail(trx, indexedAtOnce), unwitnessed);
  }

  #add(trx: Write, changes: readonly Change[], result: unknown): Promise<unknown> | undefined {
    const recording = this.#contexts.getStore()?.recording;
    if (recording !== undefined) return this.#addOfCall(trx, recording, changes, result);
    const own = changes.filter(({ kind }) => !isBookkeeping(kind));
    return own.length === 0 ? undefined : this.#insert(trx, entryOfSystem(own, this.#options));
  }

  #addOfCall(
    trx: Write,
    recording: Recording,
    changes: readonly Change[],
    result: unknown,
  ): Promise<unknown> | undefined {
    const own = recording.isWritten ? undefined : this.#record(trx, recording, changes, result);
    // Another account sees the change to its resources, but not its author.
    const others = foreignChanges(changes, recording.accountId, this.#options);
    return others.length === 0 ? own : this.#addOfOthers(trx, own, others);
  }

  async #addOfOthers(
    trx: Write,
    own: Promise<unknown> | undefined,
    others: readonly (readonly Change[])[],
  ): Promise<void> {
    await own;
    for (const foreign of others)
      await this.#insert(trx, entryOfSystem(foreign, this.#options, "through a call in another account"));
  }

  /** Adds the entry of a call. Returns nothing if it is written already. */
  #record(
    trx: Write,
    recording: Recording,
    changes: readonly Change[],
    result: unknown,
  ): Promise<unknown> | undefined {
    const { operation, call } = recording;
    const before =
      operation.before === undefined ? recording.before : beforeJson(call.before, operation.before);
    // An attempt before was rolled back. Readers of the log pass over ids in their order, and would miss an old one.
    const isRepeated = recording.entryId !== undefined;
    if (recording.entryId === undefined || clock.now() - timeOfEntry(recording.entryId) > freshMs)
      recording.entryId = newEntryId();
    const outcome = { id: recording.entryId, before, changes, result };
    const entry = entryOfCall(operation, call, outcome, this.#options);
    recording.accountId = entry.account_id === "" ? null : entry.account_id;
    recording.isListed = recording.accountId !== null || entry.user_id !== null;
    return isRepeated ? this.#insertOnce(trx, entry) : this.#insert(trx, entry);
  }

  /** The transaction of an attempt before may have been committed meanwhile. */
  async #insertOnce(trx: Write, entry: store.AuditEntry): Promise<void> {
    if (!(await store.exists(trx, entry))) await this.#insert(trx, entry);
  }

  async #recordAlone(recording: Recording): Promise<void> {
    await this.#options.storage.write(
      async (trx) => this.#record(trx, recording, [], undefined),
      unwitnessed,
    );
    recording.isWritten = true;
    this.#indexIfDue();
  }

  async #noteFailure(entry: Pick<store.AuditEntry, "account_id" | "id">, status: number): Promise<void> {
    try {
      await this.#options.storage.write(async (trx) => store.setFailed(trx, entry, status), unwitnessed);
    } catch (failure) {
      this.#options.logger.warn({ err: failure }, "an audit entry does not show that its call failed");
    }
  }
}
