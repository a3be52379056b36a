import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { capability } from "../capability.ts";
import { databaseUrl } from "./config/derived.ts";
import { during } from "./listen/during.ts";
import { reserve } from "./listen/reserve.ts";
import { createBlobs } from "./open-blobs.ts";
import { unawaited } from "./util/uncaught.ts";
import { closeDataFolder } from "./storage/private-files.ts";
import { openStorage } from "./storage/storage.ts";

const watchIntervalMs = 500;

/** The sockets of all listeners and the data folder, which nobody else may have. */
export const reservation = capability({
  name: "reservation",
  needs: [],
  async create({ config, reserved }) {
    const reservedNow = reserved ?? (await reserve(config));
    return { reserved: reservedNow, sockets: reservedNow.sockets };
  },
  close: ({ reserved }) => reserved?.[Symbol.dispose](),
});

/** The folder of the node's files. Files of an ephemeral start are deleted with the process. */
export const dataFolder = capability({
  name: "data folder",
  needs: [reservation],
  create({ config, logger }) {
    if (config.ephemeral) {
      const folder = mkdtempSync(join(tmpdir(), "selvedge-"));
      const removeFolder = (): void => rmSync(folder, { recursive: true, force: true });
      process.once("exit", removeFolder);
      return { folder, removeFolder };
    }
    unawaited(
      closeDataFolder(config.dataDir, logger).catch((error: unknown) =>
        logger.warn({ err: error }, "files in the data folder could not be closed to other users"),
      ),
    );
    return { folder: config.dataDir, removeFolder: undefined };
  },
  close({ removeFolder }) {
    if (removeFolder === undefined) return;
    process.off("exit", removeFolder);
    removeFolder();
  },
});

export const storage = capability({
  name: "storage",
  needs: [dataFolder],
  create: async ({ config }) => ({
    storage: await during(
      "open the database",
      openStorage(databaseUrl(config), config.databaseTimeoutSeconds * 1000),
    ),
  }),
  health: (services) => ({ database: () => services.storage.check() }),
  load: (services) => services.storage.watch(watchIntervalMs),
  close: (services) => services.storage.close(),
});

export const blobs = capability({
  name: "blobs",
  needs: [dataFolder, storage],
  create: ({ config, folder, logger, ...needed }) => createBlobs(config, needed.storage, folder, logger),
  metrics: async ({ blobCounts }) =>
    (await import("./observability/blob-metrics.ts")).blobMetrics(blobCounts),
  health: (services) => ({ disk: () => services.blobs.check() }),
  reload: ({ renewBlobs, logger }) =>
    renewBlobs().catch((error: unknown) => {
      logger.error({ err: error }, "the credentials of the store of blobs could not be read again");
    }),
  close: ({ closeBlobs }) => closeBlobs(),
});
