import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Logger } from "pino";
import { capability } from "../capability.ts";
import { databaseUrl, sqliteFileOf } from "./config/derived.ts";
import { edgeAddressesOf } from "./config/edge-addresses.ts";
import { during } from "./listen/during.ts";
import { reserve } from "./listen/reserve.ts";
import { shippedBlobs } from "./log-shipping/noted-blobs.ts";
import { createBlobs } from "./open-blobs.ts";
import { blobsOfEdgeProcess, serveBlobs } from "./blobs-of-edge-process.ts";
import { processes } from "./capability-processes.ts";
import { addressInfoOf, OwnListener } from "./own-listener.ts";
import { unawaited } from "./util/uncaught.ts";
import { closeDataFolder } from "./storage/private-files.ts";
import { waitForDatabase } from "./storage/wait-for-database.ts";
import { savedImage } from "./storage/under-test/saved-image.ts";
import { openReader, openStorage } from "./storage/storage.ts";
import { declaration } from "./declaration.ts";

/** How often a node reads other nodes' changes: without notifications of PostgreSQL, and with them. */
const watchIntervalMs = 500;
const notifiedIntervalMs = 5000;

/** The sockets of all listeners, and the data folder. No other process may use them. */
export const reservation = capability({
  name: "reservation",
  processes: "all",
  needs: [],
  async create({ config, reserved }) {
    const reservedNow = reserved ?? (await reserve(config));
    return { reserved: reservedNow, sockets: reservedNow.sockets };
  },
  close: ({ reserved }) => reserved?.[Symbol.dispose](),
});

/**
 * The addresses of the API, metrics and DNS listeners, which only the main process has, for every process;
 * and the edge's addresses in DNS answers.
 */
export const ownListeners = capability({
  name: "own listeners",
  processes: "all",
  needs: [reservation],
  create: ({ config }) => ({
    apiListener: new OwnListener(),
    metricsListener: new OwnListener(),
    dnsListener: new OwnListener(),
    edgeAddresses: edgeAddressesOf(config),
  }),
  async listen({ own, config, ...services }) {
    if (own.role !== "edge") return;
    services.apiListener.listensAt(addressInfoOf(config.apiListen));
    services.dnsListener.listensAt(addressInfoOf(own.channel.dnsAddress));
    if (config.metricsListen !== undefined)
      services.metricsListener.listensAt(addressInfoOf(config.metricsListen));
  },
});

/** The folder of the node's files. Files of an ephemeral start are deleted with the process. */
export const dataFolder = capability({
  name: "data folder",
  processes: "all",
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
        logger.warn(
          { err: error },
          "other users may read files in the data folder: permissions could not be set",
        ),
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

/** Logs the first of several failures to read other nodes' changes, and the recovery. */
function reportTo(logger: Logger): (failure: unknown) => void {
  let isFailing = false;
  return (failure) => {
    if (failure === undefined) logger.info("the changes of other nodes can be read again");
    else if (!isFailing) logger.error({ err: failure }, "the changes of other nodes cannot be read");
    isFailing = failure !== undefined;
  };
}

/** The database. Edge processes only read it. */
export const storage = capability({
  name: "storage",
  processes: "all",
  declares: declaration,
  needs: [dataFolder],
  async create({ config, logger, own }) {
    const timeoutMs = config.databaseTimeoutSeconds * 1000;
    if (own.role === "edge") {
      const reader = await openReader(databaseUrl(config), timeoutMs, own.channel);
      const answering = waitForDatabase(
        async () => reader.check().then(() => reader),
        config.databaseWaitSeconds,
        logger,
      );
      return { storage: await during("open the database", answering), logShipping: undefined };
    }
    // Edge processes need neither.
    const { checkBackupSettings } = await import("./periodic-backups.ts");
    const { checkShippedLog, followLog } = await import("./log-shipping/follow-log.ts");
    checkBackupSettings(config);
    await checkShippedLog(config, logger);
    const { logShipping, follower } = followLog(config, logger);
    const opening = waitForDatabase(
      () => openStorage(databaseUrl(config), timeoutMs, follower, savedImage(config.testState)),
      config.databaseWaitSeconds,
      logger,
    );
    return { storage: await during("open the database", opening), logShipping };
  },
  metrics: async ({ config, folder, logShipping, ...services }) => [
    ...(await import("./observability/change-metrics.ts")).changeMetrics(services.storage),
    ...(await import("./observability/storage-metrics.ts")).storageMetrics(services.storage, {
      file: sqliteFileOf(config),
      folder,
    }),
    ...(await import("./observability/backup-metrics.ts")).logMetrics(logShipping),
  ],
  health: ({ config, ...services }) => ({
    database: () => services.storage.check(),
    async changes_stale() {
      const { lagSeconds } = services.storage;
      if (lagSeconds > config.staleAfterSeconds)
        throw new Error(`the changes of the last ${Math.floor(lagSeconds)} seconds may be missing`);
    },
  }),
  load: ({ logger, ...services }) => services.storage.watch(reportTo(logger)),
  async listen({ own }) {
    if (own.role === "edge") await own.channel.caughtUp();
  },
  run: ({ config, ...services }) =>
    services.storage.follow({
      everyMs: watchIntervalMs,
      whileNotifiedMs: Math.min(notifiedIntervalMs, (config.staleAfterSeconds * 1000) / 2),
    }),
  close: (services) => services.storage.close(),
});

/** The store of images, assets and large values: files of the data folder, a bucket, or PostgreSQL. */
export const blobs = capability({
  name: "blobs",
  processes: "all",
  needs: [dataFolder, storage, processes],
  async create({ config, folder, logger, logShipping, own, calls, ...needed }) {
    if (own.role === "edge") return blobsOfEdgeProcess(config, folder, calls!);
    const services = await createBlobs(config, needed.storage, folder, logger);
    if (logShipping?.shipsBlobs !== true) return services;
    return { ...services, blobs: shippedBlobs(services.blobs, folder, needed.storage) };
  },
  load: ({ calls, own, ...services }) => {
    if (own.role === "main") serveBlobs(calls!, services.blobs);
  },
  metrics: async ({ blobCounts }) =>
    (await import("./observability/blob-metrics.ts")).blobMetrics(blobCounts),
  health: (services) => ({ disk: () => services.blobs.check() }),
  reload: ({ renewBlobs, logger }) =>
    renewBlobs().catch((error: unknown) => {
      logger.error({ err: error }, "the credentials of the store of blobs could not be read again");
    }),
  close: ({ closeBlobs }) => closeBlobs(),
});
