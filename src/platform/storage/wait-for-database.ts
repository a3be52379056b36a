import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { DatabaseUnavailable } from "./faults.ts";
import type { Storage } from "./storage.ts";

const pauseMs = 250;

/**
 * Opens the database, and tries again for `seconds` while its server cannot be reached or is starting. A server
 * that refuses the user or the password is not tried again. Throws the last failure.
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
      if (!isAway(error) || performance.now() + pauseMs > endMs) throw error;
      if (attempt === 1) logger.warn({ err: error, seconds }, "waiting for the database");
      await delay(pauseMs);
    }
  }
}

/** False if the server refuses the credentials (class 28 of PostgreSQL's error codes), and for SQLite. */
function isAway(error: unknown): boolean {
  const causes: Error[] = [];
  for (let each = error; each instanceof Error; each = each.cause) causes.push(each);
  const isRefused = causes.some((each) => String((each as { code?: unknown }).code).startsWith("28"));
  return !isRefused && causes.some((each) => each instanceof DatabaseUnavailable);
}
