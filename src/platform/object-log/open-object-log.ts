import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "pino";
import { encryptionOf } from "../backup-encryption.ts";
import { durationMs } from "../config/forms.ts";
import type { Config } from "../config/settings.ts";
import { openedLater, openLogFiles } from "../log-shipping/log-files.ts";
import { openArchiveStore } from "../open-archive-store.ts";
import type { Archive } from "../storage/archive/archive.ts";
import { inTurnsOfStarts } from "../storage/dialects.ts";
import type { Storage } from "../storage/storage.ts";
import { objectsFolderOf } from "../storage/live-files/object-files.ts";
import { repeat } from "../util/repeat.ts";
import { unawaited } from "../util/uncaught.ts";
import { Catalog } from "./catalog.ts";
import { finishReplacements } from "./history.ts";
import { ownOrder } from "./log-order.ts";
import { ObjectLog } from "./object-log.ts";
import { startPruning } from "./prune.ts";
import { reconcile } from "./reconcile.ts";
import { logPrefix } from "./segment.ts";
import { SharedOrder, type LogLease, type LogReader } from "./shared-order.ts";
import { checkSharedStore } from "./shared-store.ts";

/** How often a node reads what others have added, and finds that rows are lost which it has added itself. */
const syncMs = 10_000;

/** The log of objects of a running node. */
export interface OpenObjectLog {
  log: ObjectLog;
  catalog: Catalog;
  files: Archive;
  /** Resolves when the catalog has everything that is in the store. */
  ready: () => Promise<void>;
  /** Resolves when the catalog knows everything that any node has added. */
  sync: () => Promise<void>;
  /** The folder of the namespaces of objects. */
  folder: string;
  /** The folder with notes about files that are being replaced. */
  notes: string;
  close: () => Promise<void>;
}

/**
 * Opens the log of objects; undefined if `object-log` is not set. If the store cannot be reached, the log retries. With
 * `shared`, other nodes write the log, too.
 */
export async function openObjectLog(
  config: Config,
  dataDir: string,
  logger: Logger,
  shared?: SharedLog,
): Promise<OpenObjectLog | undefined> {
  if (config.objectLog === undefined || config.backupFolder === undefined) return undefined;
  const own = join(dataDir, "object-log");
  mkdirSync(own, { recursive: true, mode: 0o700 });
  const folder = objectsFolderOf(dataDir);
  const notes = join(own, "replacing");
  const store = await openArchiveStore(config.backupFolder, config, "--backup-folder");
  const catalog = openCatalog(join(own, "catalog.db"), logger);
  const open = async (): Promise<Archive> =>
    openLogFiles(store.files, encryptionOf(config), { isWriter: true, prefix: logPrefix });
  const reader = readerOf(() => log, logger);
  const sharedOrder = shared && new SharedOrder(shared.storage.read, catalog, shared.lease, reader);
  const order = sharedOrder ?? ownOrder(catalog);
  const files = openedLater(store.shown, async () => {
    if (shared !== undefined)
      return inTurnsOfStarts(shared.storage, async () => {
        await checkSharedStore(shared.storage, store.files);
        return open();
      });
    const opened = await open();
    await reconcile(catalog, opened);
    return opened;
  });
  const ready = async (): Promise<void> => {
    await files.read(`${logPrefix}key.json`); // the first use opens the store
  };
  const log = new ObjectLog({
    folder,
    catalog,
    files,
    order,
    ready,
    everyMs: durationMs(config.objectLog),
    logger,
  });
  for (const file of finishReplacements(folder, notes)) log.noteReplaced(file);
  if (shared === undefined)
    unawaited(
      log.catchUp().catch((error: unknown) => {
        logger.error({ err: error }, "databases of objects could not be copied to the log of objects");
      }),
    );
  const stopPruning = startPruning({ catalog, files, order, ready }, config.objectLogDays, own, logger);
  const sync = async (): Promise<void> => sharedOrder?.sync();
  const stopSyncing = shared && startSyncing(sync, logger);
  const close = async (): Promise<void> => {
    await stopPruning();
    await stopSyncing?.();
    await log.close();
    catalog.close();
    await store.close();
  };
  return { log, catalog, files, ready, sync, folder, notes, close };
}

const startSyncing = (sync: () => Promise<void>, logger: Logger): (() => Promise<void>) =>
  repeat(sync, { everyMs: syncMs }, { logger, message: "reading the log of objects of other nodes failed" });

const readerOf = (log: () => ObjectLog, logger: Logger): LogReader => ({
  synced: (last) => log().stamps.see(last),
  rewritten(files, hasLoss) {
    const count = { files: files.length };
    if (hasLoss)
      logger.error(
        count,
        "the database lost a part of the log of objects; adding this node's files to it again",
      );
    else logger.info(count, "read the log of objects again, because entries that were read before are gone");
    log().replaceLost(files);
  },
});

/** The database and the lease of a node that writes a log together with others. */
export interface SharedLog {
  storage: Storage;
  lease: LogLease;
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
