import type { Read } from "../storage.ts";
import { unawaited } from "../../util/uncaught.ts";
import { isUnavailable } from "../faults.ts";
import { pruneChanges, type TransactionId } from "./change-log.ts";
import { examine, type GapReason, type LoggedTransaction, type LogPosition } from "./examine.ts";
import type { ChangeLogConnection } from "./change-log-connection.ts";
import type { ChangeListeners } from "./listeners.ts";
import { OwnChanges } from "./own-changes.ts";

const rowsAtOnce = 5000;
const retryMsMax = 5000;
/** The shortest time between two reads for requests that wait for a change. */
const askedIntervalMs = 100;
/** The longest time between two attempts to reach the database. */
const reconnectMsMax = 500;
const probeEveryMs = 1000;
const pruneIntervalMs = 5 * 60 * 1000;
/** Notifications arrive within this time. */
const noticeMsMax = 1000;

/** How often a node reads the log. */
export interface FollowIntervals {
  everyMs: number;
  /** The interval while notifications arrive. */
  whileNotifiedMs: number;
}

export interface FollowerParts {
  connection: ChangeLogConnection;
  listeners: ChangeListeners;
  read: Read;
  /** Called with each failure to follow, and with undefined once following works again. */
  onState?: (failure: unknown) => void;
}

/**
 * Follows the log of changes: passes the changes of other nodes to the listeners, in their order. If changes
 * are missing, all listeners read everything again. A change counts as taken over only when every listener has
 * handled it; until then it is repeated, and `lagSeconds` grows.
 */
export class Follower {
  readonly #parts: FollowerParts;
  readonly #own = new OwnChanges();
  readonly #waiting = new Set<{ seq: number; resolve: () => void }>();
  #position: LogPosition | undefined;
  #headSeq = 0;
  #reading: Promise<void> | undefined;
  #isReadingAgain = false;
  #isRunning = false;
  #timer: NodeJS.Timeout | undefined;
  #asked: NodeJS.Timeout | undefined;
  #intervals: FollowIntervals = { everyMs: 500, whileNotifiedMs: 5000 };
  #failures = 0;
  #lastReadMs = 0;
  /** When the oldest change that is not taken over was logged, in the time of `performance.now()`. */
  #behindSinceMs: number | undefined;
  #isWoken = false;
  #prunedMs = performance.now();
  /** Reloads since the start, by their reason. */
  readonly reloads: Record<GapReason, number> = { missing: 0, rewritten: 0 };

  constructor(parts: FollowerParts) {
    this.#parts = parts;
  }

  /** Takes the current head as position. Data that is loaded after this call is at least as new. */
  async start(): Promise<void> {
    const { head } = await this.#parts.connection.read(0, 0);
    this.#position = head;
    this.#headSeq = head.seq;
    this.#lastReadMs = performance.now();
  }

  /** Follows from now on. */
  run(intervals: FollowIntervals): void {
    this.#intervals = intervals;
    this.#isRunning = true;
    this.wake();
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    clearTimeout(this.#timer);
    clearTimeout(this.#asked);
    this.#parts.connection.close();
    await this.#reading;
  }

  /**
   * The highest number that is in effect at this node: that of an own change, or the one up to which it has taken
   * over all changes.
   */
  get seq(): number {
    return Math.max(this.takenOver, this.#own.seq);
  }

  /** All changes up to this number are in effect at this node. */
  get takenOver(): number {
    return this.#position?.seq ?? 0;
  }

  /** The number of the last change that this node knows of, on any node. */
  get headSeq(): number {
    return Math.max(this.#headSeq, this.seq);
  }

  get isNotified(): boolean {
    return this.#parts.connection.isNotified;
  }

  /** The age of the oldest change that is not in effect here, or the time since the log was last read. */
  get lagSeconds(): number {
    if (this.#position === undefined) return 0;
    const sinceMs = Math.min(this.#lastReadMs, this.#behindSinceMs ?? Infinity);
    return (performance.now() - sinceMs) / 1000;
  }

  /** Resolves with true once the change with this number is in effect, or with false after `timeoutMs`. */
  async reaches(seq: number, timeoutMs: number): Promise<boolean> {
    if (this.takenOver >= seq) return true;
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = { seq, resolve };
    this.#waiting.add(waiting);
    const timer = setTimeout(resolve, timeoutMs);
    this.#wakeSoon();
    await promise;
    clearTimeout(timer);
    this.#waiting.delete(waiting);
    return this.takenOver >= seq;
  }

  /** Notes a transaction of this node, which will be in the log if it commits. */
  expect(transaction: TransactionId): void {
    if (this.#position !== undefined) this.#own.expect(transaction);
  }

  /** Whether that transaction has committed and all listeners have handled its changes. */
  settle(transaction: TransactionId, isHandled: boolean): void {
    if (this.#position === undefined) return;
    this.#own.settle(transaction, isHandled);
    // If it was committed, the reader passes unhandled changes to the listeners again.
    if (!isHandled) this.wake();
    else if (this.#reading === undefined) this.#passOwn();
  }

  /** Reads the log soon. At most a few times each second, because callers without credentials can cause it. */
  #wakeSoon(): void {
    const waitMs = this.#lastReadMs + askedIntervalMs - performance.now();
    if (waitMs <= 0) this.wake();
    else
      this.#asked ??= setTimeout(() => {
        this.#asked = undefined;
        this.wake();
      }, waitMs).unref();
  }

  /** Reads the log now, or once more if it is being read. */
  wake(): void {
    if (!this.#isRunning) return;
    if (this.#reading !== undefined) {
      this.#isReadingAgain = true;
      return;
    }
    clearTimeout(this.#timer);
    // A listener may wait on a connection that does not notice that its server is gone. The connection to the log
    // does.
    const probing = setInterval(
      () => unawaited(this.#parts.connection.probe().catch(() => {})),
      probeEveryMs,
    );
    this.#reading = this.#readAll().finally(() => {
      clearInterval(probing);
      this.#reading = undefined;
    });
    unawaited(this.#reading);
  }

  /** Handles another node's notification of a committed change. */
  notice(): void {
    this.#isWoken = true;
    this.wake();
  }

  async #readAll(): Promise<void> {
    const { connection, onState } = this.#parts;
    let failure: unknown;
    try {
      do {
        this.#isReadingAgain = false;
        this.#isReadingAgain = (await this.#readOnce(rowsAtOnce)) || this.#isReadingAgain;
      } while (this.#isReadingAgain && this.#isRunning);
      if (this.#failures > 0) onState?.(undefined);
      this.#failures = 0;
      connection.check();
      await this.#prune();
    } catch (error) {
      failure = error;
      this.#failures++;
      if (this.#isRunning) onState?.(error);
    }
    this.#passOwn();
    if (this.#isRunning) this.#timer = setTimeout(() => this.wake(), this.#pauseMs(failure)).unref();
  }

  #pauseMs(failure: unknown): number {
    const { everyMs, whileNotifiedMs } = this.#intervals;
    if (failure === undefined) return this.#parts.connection.isNotified ? whileNotifiedMs : everyMs;
    if (isUnavailable(failure)) return Math.min(everyMs, reconnectMsMax);
    return Math.min(retryMsMax, everyMs * 2 ** Math.min(this.#failures - 1, 10));
  }

  /** Takes over the changes that one read finds. Returns whether there are more. */
  async #readOnce(rowsMax: number): Promise<boolean> {
    const { connection } = this.#parts;
    const from = this.#position!;
    const isWoken = this.#isWoken;
    this.#isWoken = false;
    const view = await connection.read(from.seq, rowsMax);
    const readMs = performance.now();
    this.#lastReadMs = readMs;
    this.#headSeq = view.head.seq;
    const examined = examine(from, view);
    if (examined.gap !== undefined) {
      this.#behindSinceMs ??= readMs;
      await this.#reload(examined.gap, view.head);
      return false;
    }
    const { transactions, rowsWanted } = examined;
    if (rowsWanted !== undefined) return this.#readOnce(rowsWanted);
    const foreign = await this.#foreignOf(transactions);
    if (foreign[0] !== undefined) {
      const ageMs = Math.max(0, view.nowMs - foreign[0].loggedOn);
      this.#behindSinceMs = readMs - ageMs;
      if (!isWoken && connection.isNotified && ageMs > noticeMsMax) connection.missed();
      await this.#notify(foreign, view.isCut);
    }
    const last = transactions.at(-1);
    if (last !== undefined) this.#moveTo(last);
    this.#behindSinceMs = undefined;
    return view.isCut;
  }

  /** The transactions that the listeners have not handled yet: those of other nodes, and own ones that failed. */
  async #foreignOf(transactions: readonly LoggedTransaction[]): Promise<LoggedTransaction[]> {
    const foreign: LoggedTransaction[] = [];
    for (const transaction of transactions)
      if (!(await this.#own.isHandled(transaction))) foreign.push(transaction);
    return foreign;
  }

  /** If a listener keeps failing, the others get later changes by a reload. */
  async #notify(transactions: readonly LoggedTransaction[], isCut: boolean): Promise<void> {
    const { listeners } = this.#parts;
    try {
      await listeners.notify(transactions.flatMap(({ changes }) => changes));
    } catch (error) {
      if (isCut) await listeners.reload().catch(() => {});
      throw error;
    }
  }

  async #reload(reason: GapReason, head: LogPosition): Promise<void> {
    this.#own.forgetAll();
    await this.#parts.listeners.reload();
    this.reloads[reason]++;
    this.#moveTo(head);
    this.#behindSinceMs = undefined;
  }

  /** Advances past this node's own changes, without reading them. */
  #passOwn(): void {
    let last: TransactionId | undefined;
    for (let seq = this.takenOver + 1; ; seq++) {
      const handled = this.#own.handledAt(seq);
      if (handled === undefined) break;
      last = handled;
    }
    if (last === undefined) this.#own.forget(this.takenOver);
    else this.#moveTo(last);
  }

  #moveTo({ seq, loggedOn }: LogPosition): void {
    this.#position = { seq, loggedOn };
    this.#own.forget(seq);
    this.#wakeWaiting();
  }

  #wakeWaiting(): void {
    for (const waiting of this.#waiting) if (waiting.seq <= this.takenOver) waiting.resolve();
  }

  async #prune(): Promise<void> {
    if (performance.now() - this.#prunedMs < pruneIntervalMs) return;
    this.#prunedMs = performance.now();
    await pruneChanges(this.#parts.read);
  }
}
