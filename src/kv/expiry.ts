import type { Logger } from "pino";
import type { KvNamespaces } from "./kv.ts";

const everyMs = 60_000;

/** Removes values that have expired, from time to time. Returns what ends it. */
export function removeExpired(kv: KvNamespaces, logger: Logger): () => Promise<void> {
  let running = Promise.resolve();
  const timer = setInterval(() => {
    running = running
      .then(async () => kv.purge())
      .catch((error: unknown) => logger.warn({ err: error }, "removing expired values failed"));
  }, everyMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await running;
  };
}
