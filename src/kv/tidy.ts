import type { Logger } from "pino";
import { repeat } from "../util/repeat.ts";
import type { KvNamespaces } from "./kv.ts";

const minuteMs = 60_000;

/** Removes expired values and abandoned files, from time to time. Returns what ends it. */
export function tidyKv(kv: KvNamespaces, logger: Logger): () => Promise<void> {
  const stops = [
    repeat(
      async () => kv.purge(),
      { everyMs: minuteMs },
      { logger, message: "removing expired values failed" },
    ),
    repeat(
      async () => kv.removeOrphans(),
      { everyMs: 60 * minuteMs, firstMs: 10 * minuteMs },
      { logger, message: "removing files that no value lies in failed" },
    ),
  ];
  return async () => void (await Promise.all(stops.map(async (stop) => stop())));
}
