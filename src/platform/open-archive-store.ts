import { basename, dirname, resolve } from "node:path";
import { parseBlobUrl, type S3Url } from "./config/blob-url.ts";
import { encryptionOf } from "./backup-encryption.ts";
import { ConfigError } from "./config/config.ts";
import type { Config } from "./config/settings.ts";
import { backupCredentials, s3Address } from "./s3-settings.ts";
import type { ArchiveStore } from "./storage/archive/archive.ts";
import { EncryptedArchiveStore } from "./storage/archive/encrypted-store.ts";
import { FolderArchiveStore } from "./storage/archive/folder.ts";
import type { BackupAt } from "./storage/backup/manifest.ts";

/** Whether a store of backups is a bucket: `s3://…`. Otherwise it is a folder. */
export const isBucket = (text: string): boolean => text.startsWith("s3:");

/** The URL of a store of backups in a bucket. Throws ConfigError. */
export function bucketUrlOf(text: string, source: string): S3Url {
  const url = parseBlobUrl(text, source);
  if (url.kind !== "s3") throw new ConfigError(`Expected s3://BUCKET/PREFIX for ${source}`);
  return url;
}

/** Opens a folder of backups, or a prefix of a bucket. The caller closes it. */
export async function openArchiveStore(text: string, config: Config, source: string): Promise<ArchiveStore> {
  const encryption = encryptionOf(config);
  if (!isBucket(text)) return new EncryptedArchiveStore(new FolderArchiveStore(resolve(text)), encryption);
  return new EncryptedArchiveStore(await openBucket(bucketUrlOf(text, source), config), encryption);
}

/** Opens one backup, whose name is the last part of the path. The caller closes it. */
export async function openBackupAt(text: string, config: Config): Promise<BackupAt> {
  const encryption = encryptionOf(config);
  if (!isBucket(text)) {
    const path = resolve(text);
    return {
      store: new EncryptedArchiveStore(new FolderArchiveStore(dirname(path)), encryption),
      name: basename(path),
    };
  }
  const url = bucketUrlOf(text, "the backup");
  const parts = url.prefix.split("/").slice(0, -1);
  const name = parts.pop();
  if (name === undefined) throw new ConfigError("Expected a name for the backup, as in s3://BUCKET/NAME");
  const prefix = parts.map((part) => `${part}/`).join("");
  return { store: new EncryptedArchiveStore(await openBucket({ ...url, prefix }, config), encryption), name };
}

async function openBucket(url: S3Url, config: Config): Promise<ArchiveStore> {
  const credentials = backupCredentials(config);
  const { S3Store } = await import("./storage/blobs/s3-store.ts");
  const { S3ArchiveStore } = await import("./storage/archive/s3.ts");
  const shown = `s3://${url.bucket}/${url.prefix}`.replace(/\/$/, "");
  return new S3ArchiveStore(new S3Store({ ...s3Address(url), credentials }), shown);
}
