/**
 * Why a run ended without an answer of its script: it exceeded its CPU time or memory (`cpu`, `memory`), it
 * ended its process (`crashed`), it threw (`exception`), too many requests were waiting (`overloaded`), or no
 * cell was available (`unavailable`).
 */
export type CellErrorKind = "cpu" | "memory" | "crashed" | "exception" | "overloaded" | "unavailable";

/** A run that failed for a reason of the cell or the limits, not by an exception of the script. */
export class CellError extends Error {
  readonly kind: CellErrorKind;

  constructor(kind: CellErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

/**
 * Why a cell ended, with all runs in it. No script is to blame for `killed` (by a signal from outside) and
 * `ended` (the cell was replaced and its memory was needed).
 */
export type FaultKind = "cpu" | "memory" | "crashed" | "killed" | "ended";

/** The error of every run in a cell that died. */
export class CellFault extends Error {
  readonly kind: FaultKind;
  /** Whether this run may have caused the fault. */
  readonly mayBeCulprit: boolean;
  /** Whether the cell had certainly not begun to read this request. */
  isUnprocessed = false;
  /** Whether the cell has objects: calls of them stay in it, so the run may have called one, which may have stored something. */
  hasObjects = false;

  constructor(kind: FaultKind, mayBeCulprit: boolean) {
    super(`the cell died (${kind})`);
    this.kind = kind;
    this.mayBeCulprit = mayBeCulprit;
  }
}

/** A refusal whose message may be shown to the script. Other errors are only logged. */
export class Refusal extends Error {}

/** For requests of scripts while the data of an edge process is not current. */
export const outdated = "The configuration of this process is out of date.";

/** A refusal of a call of a Durable Object, with the properties of the error by which scripts decide about retries. */
export class ObjectRefusal extends Refusal {
  readonly flags: readonly ("retryable" | "overloaded")[];

  constructor(message: string, ...flags: ("retryable" | "overloaded")[]) {
    super(message);
    this.flags = flags;
  }
}

/** The names of properties that are set to true on the error in the script: retryable, overloaded. */
export const refusalFlags = (error: unknown): readonly string[] =>
  error instanceof ObjectRefusal ? error.flags : [];

/** The message that a script gets for an error: a generic text unless it is a Refusal. */
export const refusalText = (error: unknown): string =>
  error instanceof Refusal ? error.message : "The platform could not answer this call.";

export const faultMessages: Record<Exclude<FaultKind, "killed" | "ended">, string> = {
  cpu: "The script exceeded its CPU time limit.",
  memory: "The script exceeded its memory limit.",
  crashed: "The process that ran the script ended.",
};

export const unavailable = (why = "no cell could be started", cause?: Error): CellError =>
  new CellError("unavailable", `Scripts cannot be run now: ${why}.`, { cause });

/** The error of a request that was refused a slot, or whose run was evicted. */
export const overloaded = (): CellError =>
  new CellError("overloaded", "The account or the script has too many requests in progress.");
