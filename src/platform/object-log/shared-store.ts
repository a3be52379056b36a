import type { Archive } from "../storage/archive/archive.ts";
import { BackupError } from "../storage/archive/errors.ts";
import { contentStream, readText } from "../storage/archive/manifest-files.ts";
import { sharedValue, shareValue } from "../storage/nodes/shared-values.ts";
import type { Storage } from "../storage/storage.ts";
import { newUuid } from "../util/ids.ts";

/** The name of the shared value that says which store of archives it is. */
export const storeKey = "object_log_place";
/** Beside the log, so that it does not count as a part of it. */
const path = "object-log-place";

/** The mark of a store to which nodes ship the log of objects; undefined for an unused one. */
export const storeMarkOf = async (files: Archive): Promise<string | undefined> => readText(files, path);

/** Marks an unused store. Returns the mark. */
export async function markStore(files: Archive): Promise<string> {
  const mark = newUuid();
  await files.write(path, contentStream(mark));
  return mark;
}

/**
 * Throws BackupError unless a store of archives is the one to which all nodes of the installation ship the log of objects.
 * The first node decides. Call it in turns of nodes.
 */
export async function checkSharedStore(storage: Storage, files: Archive): Promise<void> {
  const known = await sharedValue(storage, storeKey);
  const found = await storeMarkOf(files);
  if (known !== undefined) {
    if (found === known) return;
    throw otherStore(files);
  }
  if (found !== undefined) throw usedStore(files);
  await shareValue(storage, storeKey, await markStore(files));
}

/** The error for a store with the log of another installation. */
export const usedStore = (files: Archive): BackupError =>
  new BackupError(
    `Expected an unused location for --backup-folder: ${files.shown} has the log of objects of another installation.`,
  );

/** The error for a store that is not the installation's. */
export const otherStore = (files: Archive): BackupError =>
  new BackupError(
    `Expected the location for --backup-folder that the other nodes have: ${files.shown} is not where this installation ships the log of objects.`,
  );
