import type { S3Url } from "./config/blob-url.ts";
import { ConfigError } from "./config/config.ts";
import type { Config } from "./config/settings.ts";
import {
  environmentCredentials,
  fixedCredentials,
  RefusedAddress,
  type CredentialsSource,
} from "./storage/blobs/credentials.ts";

const defaultRegion = "us-east-1";

/** AWS expects the bucket in the host name. Its certificates cover only bucket names without dots there. */
export function s3Address({
  endpoint,
  region = process.env["AWS_REGION"] ?? defaultRegion,
  bucket,
  prefix,
}: S3Url) {
  return {
    bucket,
    prefix,
    region,
    endpoint: endpoint ?? `https://s3.${region}.amazonaws.com`,
    isInPath: endpoint !== undefined || bucket.includes("."),
  };
}

/** The credentials of the blobs' bucket. Throws ConfigError if there are none. */
export function blobCredentials(config: Config): CredentialsSource {
  return pairOf(config, "blob") ?? ofEnvironment() ?? refuse("--blob-url", "blob");
}

/** The credentials of the backups' bucket: its own, or those of the blobs. Throws ConfigError if there are none. */
export function backupCredentials(config: Config): CredentialsSource {
  const own = pairOf(config, "backup") ?? pairOf(config, "blob");
  return own ?? ofEnvironment() ?? refuse("a backup in a bucket", "backup");
}

function pairOf(config: Config, of: "blob" | "backup"): CredentialsSource | undefined {
  const accessKeyId = config[`${of}AccessKeyId`];
  const secretAccessKey = config[`${of}SecretAccessKey`];
  if (accessKeyId === undefined && secretAccessKey === undefined) return undefined;
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw new ConfigError(`Expected both --${of}-access-key-id and --${of}-secret-access-key`);
  return fixedCredentials({ accessKeyId, secretAccessKey });
}

function ofEnvironment(): CredentialsSource | undefined {
  try {
    return environmentCredentials();
  } catch (error) {
    throw error instanceof RefusedAddress ? new ConfigError(error.message) : error;
  }
}

function refuse(what: string, of: string): never {
  throw new ConfigError(
    `Expected credentials for ${what}: --${of}-access-key-id and --${of}-secret-access-key, or in the environment ` +
      "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_SHARED_CREDENTIALS_FILE, or AWS_CONTAINER_CREDENTIALS_FULL_URI",
  );
}
