import type { Change } from "../storage.ts";
import type { TransactionId } from "./change-log.ts";

/** The last transaction that a node has taken over. `loggedOn` is undefined if its row was gone already. */
export interface LogPosition {
  seq: number;
  loggedOn: number | undefined;
}

/** One row of the log. */
export interface LogRow {
  seq: number;
  n: number;
  total: number;
  kind: string;
  id: string;
  parent_id: string | null;
  logged_on: number;
}

/** The result of one statement: the head, the transaction at the reader's position, and rows after it in order. */
export interface LogView {
  head: LogPosition;
  /** When the transaction at the reader's position was logged; undefined if its rows are gone. */
  atPosition: number | undefined;
  rows: readonly LogRow[];
  /** Whether there may be more rows than these. */
  isCut: boolean;
}

/** A transaction of the log with all of its changes. */
export interface LoggedTransaction extends TransactionId {
  changes: Change[];
}

export type GapReason = "missing" | "rewritten";
export type Examined =
  | { transactions: LoggedTransaction[]; gap: undefined; rowsWanted: number | undefined }
  | { transactions: undefined; gap: GapReason; rowsWanted: undefined };

const gap = (reason: GapReason): Examined => ({
  transactions: undefined,
  gap: reason,
  rowsWanted: undefined,
});

/**
 * The transactions after a position, if none of them is missing. "missing": rows were deleted. "rewritten":
 * the log no longer has a transaction that the reader took over, for example because the database was
 * restored or failed over to a server that lacked it. `rowsWanted` is set when a transaction has more rows
 * than were read at once.
 */
export function examine(from: LogPosition, view: LogView): Examined {
  const { head, rows } = view;
  if (head.seq < from.seq) return gap("rewritten");
  if (from.loggedOn !== undefined && view.atPosition !== from.loggedOn)
    return gap(view.atPosition === undefined ? "missing" : "rewritten");
  const transactions: LoggedTransaction[] = [];
  let seq = from.seq;
  for (let at = 0; at < rows.length;) {
    const { total, logged_on: loggedOn } = rows[at]!;
    const own = rows.slice(at, at + total);
    if (rows[at]!.seq !== seq + 1) return gap("missing");
    if (own.some((row, index) => row.seq !== seq + 1 || row.n !== index + 1)) return gap("missing");
    if (own.length < total) {
      if (!view.isCut) return gap("missing");
      return { transactions, gap: undefined, rowsWanted: transactions.length === 0 ? total : undefined };
    }
    transactions.push({ seq: ++seq, loggedOn, changes: own.map(changeOf) });
    at += total;
  }
  return seq < head.seq && !view.isCut
    ? gap("missing")
    : { transactions, gap: undefined, rowsWanted: undefined };
}

const changeOf = ({ kind, id, parent_id }: LogRow): Change => ({
  kind: kind as Change["kind"],
  id,
  ...(parent_id === null ? {} : { parentId: parent_id }),
});
