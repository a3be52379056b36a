import { join } from "node:path";
import type { Logger } from "pino";
import { parseBlobUrl, type BlobUrl, type S3Url } from "./platform/config/blob-url.ts";
import { ConfigError } from "./platform/config/config.ts";
import type { Config } from "./platform/config/settings.ts";
import { FileBlobs, type Blobs } from "./platform/storage/blobs.ts";
import { BlobCounts } from "./platform/storage/blobs/blob-counts.ts";
import type { BlobStore } from "./platform/storage/blobs/blob-store.ts";
import { BlobsUnavailable } from "./platform/storage/faults.ts";

const mebibyte = 1024 * 1024;
const defaultRegion = "us-east-1";

/** The bytes of images, assets and large values. */
export interface BlobServices {
  blobs: Blobs;
  blobCounts: BlobCounts;
  closeBlobs: () => Promise<void>;
}

/** Throws ConfigError if the settings of blobs contradict each other. */
export function blobUrlOf(config: Config): BlobUrl {
  const url = parseBlobUrl(config.blobUrl);
  if (url.kind === "s3") credentialsOf(config);
  return url;
}

/** Opens the store of blobs. `folder` is the node's data folder. */
export async function createBlobs(config: Config, folder: string, logger: Logger): Promise<BlobServices> {
  const url = blobUrlOf(config);
  const blobCounts = new BlobCounts(url.kind);
  if (url.kind === "files")
    return {
      blobs: new FileBlobs(join(folder, "blobs"), blobCounts),
      blobCounts,
      closeBlobs: async () => {},
    };
  const store = await openBlobStore(url, config);
  await checkStore(store, logger);
  const { RemoteBlobs } = await import("./platform/storage/blobs/remote-blobs.ts");
  const blobs = new RemoteBlobs({
    store,
    folder: join(folder, "cache", "blobs"),
    cacheBytes: config.blobCacheMegabytes * mebibyte,
    counts: blobCounts,
    logger,
  });
  return { blobs, blobCounts, closeBlobs: () => store.close() };
}

export async function openBlobStore(url: BlobUrl, config: Config): Promise<BlobStore> {
  if (url.kind !== "s3") throw new ConfigError(`Expected s3://… for --blob-url but received ${url.kind}`);
  const { S3Store } = await import("./platform/storage/blobs/s3-store.ts");
  return new S3Store({ ...s3Place(url), credentials: credentialsOf(config) });
}

/** AWS wants the bucket in the host, where a certificate of AWS covers names without dots only. */
function s3Place({ endpoint, region = process.env["AWS_REGION"] ?? defaultRegion, bucket, prefix }: S3Url) {
  return {
    bucket,
    prefix,
    region,
    endpoint: endpoint ?? `https://s3.${region}.amazonaws.com`,
    isInPath: endpoint !== undefined || bucket.includes("."),
  };
}

function credentialsOf(config: Config) {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = process.env;
  const accessKeyId = config.blobAccessKeyId ?? AWS_ACCESS_KEY_ID;
  const secretAccessKey = config.blobSecretAccessKey ?? AWS_SECRET_ACCESS_KEY;
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw new ConfigError(
      "Expected credentials for --blob-url: --blob-access-key-id and --blob-secret-access-key, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment",
    );
  const sessionToken = config.blobAccessKeyId === undefined ? AWS_SESSION_TOKEN : undefined;
  return { accessKeyId, secretAccessKey, sessionToken };
}

/** A store that is away may return; one that refuses us will not, and the operator has to know. */
async function checkStore(store: BlobStore, logger: Logger): Promise<void> {
  try {
    await store.check();
  } catch (error) {
    if (error instanceof BlobsUnavailable) {
      logger.warn({ err: error }, "the store of blobs does not answer");
      return;
    }
    await store.close();
    throw new Error(
      "The store that --blob-url names refuses to be used: check the bucket and the credentials",
      {
        cause: error,
      },
    );
  }
}
