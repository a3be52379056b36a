import type { Archive } from "../storage/archive/archive.ts";
import { BackupError } from "../storage/archive/errors.ts";
import { bytesOf, textOf } from "../storage/archive/manifest-files.ts";
import { sharedValue, shareValue } from "../storage/nodes/shared-values.ts";
import type { Storage } from "../storage/storage.ts";
import { newUuid } from "../util/ids.ts";

const key = "object_log_place";
/** Beside the log, so that it does not count as a part of it. */
const path = "object-log-place";

/**
 * Throws BackupError unless a place is the one where all nodes of the installation ship the log of objects. The first node
 * decides. Call it in turns of nodes.
 */
export async function checkSharedPlace(storage: Storage, files: Archive): Promise<void> {
  const known = await sharedValue(storage, key);
  const found = await textOf(files, path);
  if (known !== undefined) {
    if (found === known) return;
    throw new BackupError(
      `Expected the place for --backup-folder that the other nodes have: ${files.shown} is not where this installation ships the log of objects.`,
    );
  }
  if (found !== undefined)
    throw new BackupError(
      `Expected an unused place for --backup-folder: ${files.shown} has the log of objects of another installation.`,
    );
  const id = newUuid();
  await files.write(path, bytesOf(id));
  await shareValue(storage, key, id);
}
