import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "pino";
import { encryptionOf } from "../backup-encryption.ts";
import { durationMs } from "../config/forms.ts";
import type { Config } from "../config/settings.ts";
import { openedLater, openLogFiles } from "../log-shipping/log-files.ts";
import { openArchiveStore } from "../open-archive-store.ts";
import type { Archive } from "../storage/archive/archive.ts";
import { objectsFolderOf } from "../storage/live-files/object-files.ts";
import { unawaited } from "../util/uncaught.ts";
import { Catalog } from "./catalog.ts";
import { finishReplacements } from "./history.ts";
import { ObjectLog } from "./object-log.ts";
import { startPruning } from "./prune.ts";
import { reconcile } from "./reconcile.ts";
import { logPrefix } from "./segment.ts";

/** The log of objects of a running node. */
export interface OpenObjectLog {
  log: ObjectLog;
  catalog: Catalog;
  files: Archive;
  /** Resolves when the catalog has everything that is in the store. */
  ready: () => Promise<void>;
  /** The folder of the namespaces of objects. */
  folder: string;
  /** The folder with notes about files that are being replaced. */
  notes: string;
  close: () => Promise<void>;
}

/** Opens the log of objects; undefined if `object-log` is not set. If the store cannot be reached, the log retries. */
export async function openObjectLog(
  config: Config,
  dataDir: string,
  logger: Logger,
): Promise<OpenObjectLog | undefined> {
  if (config.objectLog === undefined || config.backupFolder === undefined) return undefined;
  const own = join(dataDir, "object-log");
  mkdirSync(own, { recursive: true, mode: 0o700 });
  const folder = objectsFolderOf(dataDir);
  const notes = join(own, "replacing");
  const store = await openArchiveStore(config.backupFolder, config, "--backup-folder");
  const catalog = openCatalog(join(own, "catalog.db"), logger);
  const files = openedLater(store.shown, async () => {
    const opened = await openLogFiles(store.files, encryptionOf(config), {
      isWriter: true,
      prefix: logPrefix,
    });
    await reconcile(catalog, opened);
    return opened;
  });
  const ready = async (): Promise<void> => {
    await files.read(`${logPrefix}key.json`); // the first use opens the store
  };
  const log = new ObjectLog({ folder, catalog, files, ready, everyMs: durationMs(config.objectLog), logger });
  for (const file of finishReplacements(folder, notes)) log.noteReplaced(file);
  unawaited(
    log.catchUp().catch((error: unknown) => {
      logger.error({ err: error }, "databases of objects could not be copied to the log of objects");
    }),
  );
  const stopPruning = startPruning({ catalog, files, ready }, config.objectLogDays, own, logger);
  const close = async (): Promise<void> => {
    await stopPruning();
    await log.close();
    catalog.close();
    await store.close();
  };
  return { log, catalog, files, ready, folder, notes, close };
}

/** Opens the catalog. A damaged one is replaced by an empty one, which `reconcile` fills. */
function openCatalog(path: string, logger: Logger): Catalog {
  try {
    return new Catalog(path);
  } catch (error) {
    logger.warn({ err: error }, "the catalog of the log of objects is damaged and will be rebuilt");
    for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
    return new Catalog(path);
  }
}
