import type { Logger } from "pino";
import { blobUrlOf } from "../open-blobs.ts";
import type { Config } from "../config/settings.ts";
import type { LogFollower } from "../storage/checkpointer.ts";
import { timesPath } from "./spool.ts";
import type { Report } from "./log-shipper.ts";
import type { LogThreadData } from "./thread.ts";

/** What is known about the shipping of the log. */
export interface LogShipping {
  /** Whether blobs are shipped too, because they are files of the data folder. */
  shipsBlobs: boolean;
  /** Everything that was committed until then is at the target. */
  shippedMs: number | undefined;
}

/** The thread that ships the log, if a setting asks for it; and its state, which it keeps current. */
export function followLog(
  config: Config,
  logger: Logger,
): { logShipping: LogShipping | undefined; follower: LogFollower | undefined } {
  if (config.backupLog === undefined) return { logShipping: undefined, follower: undefined };
  const shipsBlobs = blobUrlOf(config).kind === "files";
  const logShipping: LogShipping = { shipsBlobs, shippedMs: undefined };
  const data: LogThreadData = { config, shipsBlobs };
  const heard = (message: object): void => {
    const { shippedMs, error } = message as Report;
    if (shippedMs !== undefined) {
      if (logShipping.shippedMs === undefined) logger.info("the log of the database is being shipped");
      logShipping.shippedMs = shippedMs;
    }
    if (error !== undefined) logger.error({ err: error }, "the log of the database could not be shipped");
  };
  return {
    logShipping,
    follower: { module: "platform/log-shipping/thread", data, timesPath: timesPath(config.dataDir), heard },
  };
}
