import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { encryptionOf } from "../backup-encryption.ts";
import { blobUrlOf } from "../open-blobs.ts";
import type { Config } from "../config/settings.ts";
import { openArchiveStore } from "../open-archive-store.ts";
import { BackupError } from "../storage/archive/errors.ts";
import type { LogFollower } from "../storage/checkpointer.ts";
import { openLogFiles } from "./log-files.ts";
import { timesPath } from "./spool.ts";
import type { Report } from "./log-shipper.ts";
import type { LogThreadData } from "./thread.ts";

/** The progress of log shipping. */
export interface LogShipping {
  /** Whether blobs are shipped too, because they are files of the data folder. */
  shipsBlobs: boolean;
  /** Wall-clock time until which all commits are at the target; undefined before the first copy. */
  shippedMs: number | undefined;
}

/** How long the start of the node waits for the target. */
const checkMs = 5000;

/**
 * Throws BackupError if the passphrase does not open the log at the target. If the target cannot be reached,
 * the node starts nevertheless, and the thread tries again.
 */
export async function checkShippedLog(config: Config, logger: Logger): Promise<void> {
  const { backupFolder, backupLog } = config;
  if (backupLog === undefined || backupFolder === undefined) return;
  const store = await openArchiveStore(backupFolder, config, "--backup-folder");
  const opening = openLogFiles(store.files, encryptionOf(config), { isWriter: true });
  const over = new AbortController();
  try {
    await Promise.race([opening, delay(checkMs, undefined, { signal: over.signal })]);
  } catch (error) {
    if (error instanceof BackupError) throw error;
    logger.warn(
      { err: error },
      "the target of the shipped database log cannot be reached; shipping is retried",
    );
  } finally {
    over.abort();
    await store.close();
  }
}

/** The options of the thread that ships the log, and its progress. Both are undefined if `backup-log` is not set. */
export function followLog(
  config: Config,
  logger: Logger,
): { logShipping: LogShipping | undefined; follower: LogFollower | undefined } {
  if (config.backupLog === undefined) return { logShipping: undefined, follower: undefined };
  const shipsBlobs = blobUrlOf(config).kind === "files";
  const logShipping: LogShipping = { shipsBlobs, shippedMs: undefined };
  const data: LogThreadData = { config, shipsBlobs };
  const onMessage = (message: object): void => {
    const { shippedMs, error } = message as Report;
    if (shippedMs !== undefined) {
      if (logShipping.shippedMs === undefined) logger.info("the log of the database is being shipped");
      logShipping.shippedMs = shippedMs;
    }
    if (error !== undefined) logger.error({ err: error }, "the log of the database could not be shipped");
  };
  return {
    logShipping,
    follower: {
      module: "platform/log-shipping/thread",
      data,
      timesPath: timesPath(config.dataDir),
      onMessage,
    },
  };
}
