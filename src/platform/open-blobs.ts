import { join } from "node:path";
import type { Logger } from "pino";
import { mebibyte } from "./bytes.ts";
import { parseBlobUrl, type BlobUrl } from "./config/blob-url.ts";
import { ConfigError } from "./config/config.ts";
import type { Config } from "./config/settings.ts";
import { blobCredentials, s3Address } from "./s3-settings.ts";
import { FileBlobs, type Blobs, type BlobsUnderTest } from "./storage/blobs.ts";
import { BlobCounts } from "./storage/blobs/blob-counts.ts";
import type { BlobStore } from "./storage/blobs/blob-store.ts";
import { claimLocation, locationOfFiles, type BlobLocation } from "./storage/blobs/location.ts";
import { BlobsUnavailable } from "./storage/faults.ts";
import type { Storage } from "./storage/storage.ts";

/** The bytes of images, assets and large values. */
export interface BlobServices {
  blobs: Blobs;
  blobCounts: BlobCounts;
  blobsUnderTest: BlobsUnderTest;
  /** Reads the credentials of the store again. */
  renewBlobs: () => Promise<void>;
  closeBlobs: () => Promise<void>;
}

/** Throws ConfigError if the settings of blobs contradict each other. */
export function blobUrlOf(config: Config, text = config.blobUrl, source = "--blob-url"): BlobUrl {
  // The folder of an ephemeral node is deleted, and the database stays.
  const url =
    text === undefined
      ? { kind: config.ephemeral && config.databaseUrl !== undefined ? "postgres" : "files" }
      : parseBlobUrl(text, source);
  if (url.kind === "s3") blobCredentials(config);
  if (url.kind === "postgres" && config.databaseUrl === undefined)
    throw new ConfigError(`Expected --database-url with a PostgreSQL database for ${source} postgres`);
  return url as BlobUrl;
}

/** Opens the blobs of a node. Throws ConfigError if the installation keeps them in another location. */
export async function createBlobs(
  config: Config,
  storage: Storage,
  folder: string,
  logger: Logger,
): Promise<BlobServices> {
  const url = blobUrlOf(config);
  const location = await blobLocation(url, storage, folder);
  const recorded = await claimLocation(storage, location);
  if (recorded.id !== location.id) throw elsewhere(recorded, location);
  return openBlobs(url, config, storage, folder, logger);
}

const nothingOpen = { renewBlobs: async () => {}, closeBlobs: async () => {} };

/** Opens blobs, regardless of the location that the installation uses. Only `postgres` needs the storage. */
export async function openBlobs(
  url: BlobUrl,
  config: Config,
  storage: Storage | undefined,
  folder: string,
  logger: Logger,
): Promise<BlobServices> {
  const blobCounts = new BlobCounts(url.kind);
  const blobsUnderTest: BlobsUnderTest = { beforeWrite: undefined };
  if (url.kind === "files") {
    const files = filesOf(folder, blobCounts, blobsUnderTest);
    return { blobs: files, blobCounts, blobsUnderTest, ...nothingOpen };
  }
  const store = await openStore(url, config, storage);
  await checkStore(store, logger);
  const { RemoteBlobs } = await import("./storage/blobs/remote-blobs.ts");
  const blobs = new RemoteBlobs({
    store,
    folder: join(folder, "cache", "blobs"),
    cacheBytes: config.blobCacheMegabytes * mebibyte,
    counts: blobCounts,
    logger,
  });
  return {
    blobs,
    blobCounts,
    blobsUnderTest,
    renewBlobs: () => store.renew(),
    closeBlobs: () => store.close(),
  };
}

/** The blobs of a node that keeps them in its data folder. */
export const filesOf = (folder: string, counts: BlobCounts, underTest: BlobsUnderTest): FileBlobs =>
  new FileBlobs(blobFolder(folder), counts, underTest);

/**
 * The location of the blobs of a URL, in a form that nodes can compare. For files, it names the folder's own id.
 */
export async function blobLocation(url: BlobUrl, storage: Storage, folder: string): Promise<BlobLocation> {
  if (url.kind === "files") return locationOfFiles(storage.engine, blobFolder(folder));
  const id = url.kind === "s3" ? `s3://${url.bucket}/${url.prefix}` : url.kind;
  return { id, shown: id };
}

const blobFolder = (folder: string): string => join(folder, "blobs");
const isFiles = ({ id }: BlobLocation): boolean => id.startsWith("files");

/**
 * The error that keeps a node from starting with another store than the installation's, where blobs would be
 * missing.
 */
function elsewhere(recorded: BlobLocation, own: BlobLocation): ConfigError {
  if (isFiles(recorded) && isFiles(own))
    return new ConfigError(
      `This installation keeps its bytes as files of another node, at ${recorded.shown}, which this node cannot read. ` +
        'Move them with "selvedge blobs move --to s3://…" on that node, and start every node with that --blob-url. ' +
        'If that folder is lost, run "selvedge blobs move --to files --accept-lost" here.',
    );
  return new ConfigError(
    `This installation keeps its bytes in ${recorded.shown}, but --blob-url is ${own.shown}. ` +
      'Start the node with the former, or move the bytes with "selvedge blobs move --to URL".',
  );
}

async function openStore(url: BlobUrl, config: Config, storage: Storage | undefined): Promise<BlobStore> {
  if (url.kind !== "s3") {
    if (storage === undefined) throw new Error("Expected the storage of PostgreSQL to open its blobs");
    const { PostgresStore } = await import("./storage/blobs/postgres-store.ts");
    return new PostgresStore(storage);
  }
  const { S3Store } = await import("./storage/blobs/s3-store.ts");
  return new S3Store({ ...s3Address(url), credentials: blobCredentials(config) });
}

/**
 * Logs a store that does not answer, because it may return. Throws if the store refuses access, which the
 * operator must fix.
 */
async function checkStore(store: BlobStore, logger: Logger): Promise<void> {
  try {
    await store.check();
  } catch (error) {
    if (error instanceof BlobsUnavailable) {
      logger.warn({ err: error }, "the store of blobs does not answer");
      return;
    }
    await store.close();
    throw new Error("The store of --blob-url refuses access: check the bucket and the credentials", {
      cause: error,
    });
  }
}
