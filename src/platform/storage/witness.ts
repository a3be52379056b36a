import type { Change, Write } from "./storage.ts";

/** Adds rows to the transactions of `Storage.write`. */
export interface Witness {
  /**
   * Called before the commit, with the changes and the result of the transaction's work. Returns nothing if its rows are
   * written already.
   */
  add(trx: Write, changes: readonly Change[], result: unknown): Promise<unknown> | undefined;
  /** Called after the commit, in the same asynchronous context. */
  committed(): void;
}

/** Option of `Storage.write` for preparations and bookkeeping: the witness is not called. */
export const unwitnessed = { isWitnessed: false } as const;

type Work<T> = (trx: Write, changed: (change: Change) => void) => Promise<T>;

/** The work of a transaction, with the rows of the witness at its end. */
export function witnessing<T>(
  witness: Witness | undefined,
  work: Work<T>,
  changes: readonly Change[],
): Work<T> {
  if (witness === undefined) return work;
  return async (trx, changed) => {
    const result = await work(trx, changed);
    const adding = witness.add(trx, changes, result);
    if (adding !== undefined) await adding;
    return result;
  };
}
