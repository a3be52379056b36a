import type { Logger } from "pino";
import { repeat } from "../../platform/util/repeat.ts";
import type { KvNamespaces } from "./kv.ts";

const minuteMs = 60_000;

/** Removes expired values and unreferenced files periodically. Returns the function that stops it. */
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
      { logger, message: "removing unreferenced files failed" },
    ),
  ];
  return async () => {
    await Promise.all(stops.map(async (stop) => stop()));
  };
}
