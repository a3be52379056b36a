import type { Logger } from "pino";
import { repeat } from "../../platform/util/repeat.ts";
import type { Transfers } from "./transfers.ts";

const minuteMs = 60_000;

/** Removes files of expired imports and exports. Returns the function that stops it. */
export const tidyTransfers = (transfers: Transfers, logger: Logger): (() => Promise<void>) =>
  repeat(
    async () => transfers.tidy(),
    { everyMs: 60 * minuteMs, firstMs: 10 * minuteMs },
    { logger, message: "removing files of D1 imports and exports failed" },
  );
