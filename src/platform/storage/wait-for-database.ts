import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { isUnavailable } from "./faults.ts";
import type { Storage } from "./storage.ts";

const pauseMs = 250;

/**
 * Opens the database, and tries again for `seconds` while its server cannot be reached or is starting. A server
 * that refuses the user or the password is not asked again. Throws the last failure.
 */
export async function waitForDatabase(
  open: () => Promise<Storage>,
  seconds: number,
  logger: Pick<Logger, "warn">,
): Promise<Storage> {
  const endMs = performance.now() + seconds * 1000;
  for (let attempt = 1; ; attempt++) {
    try {
      return await open();
    } catch (error) {
      if (!isUnavailable(error) || isRefused(error) || performance.now() + pauseMs > endMs) throw error;
      if (attempt === 1) logger.warn({ err: error, seconds }, "waiting for the database");
      await delay(pauseMs);
    }
  }
}

/** Whether the server does not accept the credentials: class 28 of PostgreSQL's error codes. */
function isRefused(error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause)
    if (String((each as { code?: unknown }).code).startsWith("28")) return true;
  return false;
}
