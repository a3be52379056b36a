import { CellError, type CellErrorKind } from "./errors.ts";

/** Counts of runs by their result. */
export class RunCounts {
  readonly results: Record<"ok" | "failed" | CellErrorKind, number> = {
    ok: 0,
    exception: 0,
    cpu: 0,
    memory: 0,
    crashed: 0,
    overloaded: 0,
    unavailable: 0,
    failed: 0,
  };

  failed(error: unknown): void {
    this.results[error instanceof CellError ? error.kind : "failed"]++;
  }
}
