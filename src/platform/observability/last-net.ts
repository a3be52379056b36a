import { AsyncLocalStorage } from "node:async_hooks";
import { writeSync } from "node:fs";
import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { inspect } from "node:util";
import type { Logger } from "pino";
import { logUncaughtTo, noteUncaught, Unrecoverable, type UncaughtKind } from "../util/uncaught.ts";

/** The request for which code runs. */
interface Current {
  /** Sends 500, or aborts a response that has begun; undefined once the response has ended. */
  fail: (() => void) | undefined;
}
/** Exit code of a process that ends because of a bug. */
const internalFault = 70;
const requests = new AsyncLocalStorage<Current>();

/**
 * Runs `handle` so that an uncaught exception in it, now or later, fails its response. `fail` may be called
 * at any time.
 */
export function whileAnswering(answer: ServerResponse | Duplex, fail: () => void, handle: () => void): void {
  const current: Current = { fail };
  // A longer-lived object, such as a pooled connection, must not keep the request in memory.
  answer.on("close", () => (current.fail = undefined));
  requests.run(current, handle);
}

/**
 * Handles uncaught exceptions and rejections of this process: counts and logs them, and fails their request
 * if it is known. The process continues, except before `isReady` and for `Unrecoverable`, when it exits with
 * code 70 (EX_SOFTWARE of sysexits.h). See docs/decisions/0010.
 */
export function castLastNet(logger: Pick<Logger, "error">, isReady: () => boolean): void {
  logUncaughtTo((kind, error) => logger.error({ err: error, kind }, "an exception was not caught"));
  const take = (kind: UncaughtKind, error: unknown): void => {
    noteUncaught(kind, error);
    if (!isReady() || error instanceof Unrecoverable) endWith(error);
    try {
      requests.getStore()?.fail?.();
    } catch (failure) {
      noteUncaught("exception", failure);
    }
  };
  process.on("uncaughtException", (error) => take("exception", error));
  process.on("unhandledRejection", (reason) => take("rejection", reason));
  // The process must survive if the reader of its output exits.
  process.stdout.on("error", () => {});
  process.stderr.on("error", () => {});
}

/** Writes synchronously, because the process may exit before the logger writes. */
function endWith(error: unknown): never {
  try {
    writeSync(2, `${inspect(error)}\n`);
  } catch {
    // standard error is closed
  }
  process.exit(internalFault);
}
