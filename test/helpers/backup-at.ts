import { basename, dirname } from "node:path";
import { FolderArchiveStore } from "../../src/platform/storage/archive/folder.ts";
import type { BackupAt } from "../../src/platform/storage/backup/manifest.ts";

/** A backup in a folder. */
export const backupAt = (path: string): BackupAt => ({
  store: new FolderArchiveStore(dirname(path)),
  name: basename(path),
});
