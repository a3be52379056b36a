import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Archive } from "../storage/archive/archive.ts";
import { objectsFolderOf } from "../storage/live-files/object-files.ts";
import { Catalog } from "./catalog.ts";
import { writeObjects, type RestoredObjects } from "./history.ts";
import { reconcile } from "./reconcile.ts";
import { logPrefix } from "./segment.ts";
import { stampAt } from "./stamps.ts";

/**
 * Restores all objects and D1 databases to a time, or to the last change, into a new data folder. Returns
 * undefined if the store has no log of objects. Throws a BackupError that names a missing or damaged part of
 * the log.
 */
export async function restoreObjectLog(
  files: Archive,
  dataDir: string,
  toMs: number | undefined,
): Promise<RestoredObjects | undefined> {
  if ((await files.folders(logPrefix)).length === 0) return undefined;
  const aside = mkdtempSync(join(tmpdir(), "selvedge-object-log-"));
  const catalog = new Catalog(join(aside, "catalog.db"));
  try {
    await reconcile(catalog, files);
    // The clock of the lost machine may have been ahead.
    const at = toMs === undefined ? catalog.lastStamp : stampAt(toMs);
    return await writeObjects({ catalog, files }, objectsFolderOf(dataDir), at);
  } finally {
    catalog.close();
    rmSync(aside, { recursive: true });
  }
}
