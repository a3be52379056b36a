import { inspect } from "node:util";

/** An uncaught exception, or an unhandled rejection. */
export type UncaughtKind = "exception" | "rejection";
type Log = (kind: UncaughtKind, error: unknown) => void;

/** An error after which shared state may be corrupt, so the process must exit. */
export class Unrecoverable extends Error {}

const counts: Record<UncaughtKind, number> = { exception: 0, rejection: 0 };
let log: Log = (kind, error) => {
  process.stderr.write(`uncaught ${kind}: ${inspect(error)}\n`);
};

/** Counts in this thread since its start. Each is a bug, and the tests require zero. */
export const uncaughtCounts: Readonly<Record<UncaughtKind, number>> = counts;

/** Sets the function that reports them. Until then, they are written to standard error. */
export function logUncaughtTo(next: Log): void {
  log = next;
}

/** Counts and logs an uncaught error. Never throws. */
export function noteUncaught(kind: UncaughtKind, error: unknown): void {
  counts[kind]++;
  try {
    log(kind, error);
  } catch {
    // the error cannot be formatted or logged; it is counted
  }
}

/**
 * Marks a promise as deliberately not awaited. This is the only allowed way (see `no-void` in .oxlintrc.json
 * and test/tidy.test.ts). The promise must handle expected errors itself; a rejection counts as a bug and is
 * logged.
 */
export function unawaited(promise: PromiseLike<unknown>): void {
  promise.then(undefined, (error: unknown) => noteUncaught("rejection", error));
}

/** Like `unawaited`, for essential work: a rejection ends the process. `what` names the work in the error. */
export function vital(what: string, promise: PromiseLike<unknown>): void {
  promise.then(undefined, (error: unknown) => {
    // Throw outside the promise, so that it becomes an uncaught exception.
    process.nextTick(() => {
      throw new Unrecoverable(`${what} failed`, { cause: error });
    });
  });
}

/** Processes and threads that the platform restarts after a failure. */
export type RestartKind = "images" | "checkpoints";

const restarts: Record<RestartKind, number> = { images: 0, checkpoints: 0 };

/** Restarts since the start of this process. */
export const restartCounts: Readonly<Record<RestartKind, number>> = restarts;

/** Counts the restart of a failed process or thread. */
export function noteRestart(kind: RestartKind): void {
  restarts[kind]++;
}
