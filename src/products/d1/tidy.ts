import type { Logger } from "pino";
import { repeat } from "../../platform/util/repeat.ts";
import type { Databases } from "./databases.ts";
import type { Transfers } from "./transfers/transfers.ts";
import type { DatabaseUsage } from "./usage/usage.ts";

const minuteMs = 60_000;

/** Removes files of expired imports and exports. Returns the function that stops it. */
export const tidyTransfers = (transfers: Transfers, logger: Logger): (() => Promise<void>) =>
  repeat(
    async () => transfers.tidy(),
    { everyMs: 60 * minuteMs, firstMs: 10 * minuteMs },
    { logger, message: "removing files of D1 imports and exports failed" },
  );

/** Stores the figures of databases each minute, and when it is stopped. */
export function storeUsage(
  usage: DatabaseUsage,
  databases: Pick<Databases, "has">,
  logger: Logger,
): () => Promise<void> {
  const work = async (): Promise<void> => usage.store((id) => databases.has(id));
  const message = "the figures of D1 databases could not be stored";
  const stop = repeat(work, { everyMs: minuteMs }, { logger, message });
  return async () => {
    await stop();
    await work().catch((error: unknown) => logger.warn({ err: error }, message));
  };
}
