/**
 * Why a run ended without an answer of its script: it used more CPU time or memory than it may (`cpu`, `memory`), it took its
 * process down (`crashed`), it threw (`exception`), too many requests were waiting (`overloaded`), or no cell could be
 * had (`unavailable`).
 */
export type CellErrorKind = "cpu" | "memory" | "crashed" | "exception" | "overloaded" | "unavailable";

export class CellError extends Error {
  readonly kind: CellErrorKind;

  constructor(kind: CellErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

/** Why a cell is gone, and with it whatever was in it. `killed` is what somebody else did: no script can. */
export type FaultKind = "cpu" | "memory" | "crashed" | "killed";

/** What every request in a cell gets when the cell dies. */
export class CellFault extends Error {
  readonly kind: FaultKind;
  /** Whether this request may be the one that did it. */
  readonly isSuspect: boolean;

  constructor(kind: FaultKind, isSuspect: boolean) {
    super(`the cell died (${kind})`);
    this.kind = kind;
    this.isSuspect = isSuspect;
  }
}
