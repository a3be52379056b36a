import type { TransactionId } from "./change-log.ts";

const ownMax = 10_000;

interface Own extends TransactionId {
  isHandled: Promise<boolean>;
  settle(isHandled: boolean): void;
  /** Whether the listeners have handled its changes; undefined until its writer knows. */
  outcome: boolean | undefined;
}

/**
 * The transactions of this node that the reader of the log has not passed. The writer notifies the listeners of
 * its own changes, so the reader must not repeat them. It may read a transaction before its writer knows that it
 * is committed, and then waits for the writer. A number can be in use more than once: a transaction that is
 * rolled back gives it back.
 */
export class OwnChanges {
  readonly #bySeq = new Map<number, Own[]>();
  /** The highest number of a handled change. */
  seq = 0;

  expect(transaction: TransactionId): void {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const own: Own = { ...transaction, isHandled: promise, settle: resolve, outcome: undefined };
    this.#bySeq.set(transaction.seq, [...(this.#bySeq.get(transaction.seq) ?? []), own]);
  }

  settle(transaction: TransactionId, isHandled: boolean): void {
    const own = this.#bySeq
      .get(transaction.seq)
      ?.find((each) => isSame(each, transaction) && each.outcome === undefined);
    if (isHandled) this.seq = Math.max(this.seq, transaction.seq);
    if (own === undefined) return;
    own.outcome = isHandled;
    own.settle(isHandled);
    if (!isHandled) this.#keep(transaction.seq, (each) => each !== own);
    else if (this.#bySeq.size > ownMax) this.#forgetOldest();
  }

  /** Whether the listeners have handled a transaction because this node wrote it. */
  async isHandled(transaction: TransactionId): Promise<boolean> {
    const candidates = (this.#bySeq.get(transaction.seq) ?? []).filter((each) => isSame(each, transaction));
    return (await Promise.all(candidates.map(({ isHandled }) => isHandled))).includes(true);
  }

  /** The own transaction with this number, if its changes have been handled. */
  handledAt(seq: number): TransactionId | undefined {
    return this.#bySeq.get(seq)?.find(({ outcome }) => outcome === true);
  }

  /** Forgets the settled transactions with a number that the reader has passed. */
  forget(seq: number): void {
    for (const each of [...this.#bySeq.keys()])
      if (each <= seq) this.#keep(each, ({ outcome }) => outcome === undefined);
  }

  /** Forgets the settled transactions, because everything is read again. */
  forgetAll(): void {
    this.seq = 0;
    for (const each of [...this.#bySeq.keys()]) this.#keep(each, ({ outcome }) => outcome === undefined);
  }

  /** If the reader cannot continue, it passes the transaction to the listeners a second time, which does no harm. */
  #forgetOldest(): void {
    const [oldest] = this.#bySeq.keys();
    if (oldest !== undefined) this.#keep(oldest, ({ outcome }) => outcome === undefined);
  }

  #keep(seq: number, isKept: (own: Own) => boolean): void {
    const kept = (this.#bySeq.get(seq) ?? []).filter(isKept);
    if (kept.length > 0) this.#bySeq.set(seq, kept);
    else this.#bySeq.delete(seq);
  }
}

const isSame = (a: TransactionId, b: TransactionId): boolean => a.seq === b.seq && a.loggedOn === b.loggedOn;
