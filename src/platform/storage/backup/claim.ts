import { existsSync } from "node:fs";
import { mkdir, readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { UnusableDatabase } from "../faults.ts";
import { FolderOwner } from "../folder-owner.ts";
import { BackupError } from "../archive/errors.ts";

const marker = ".restoring";
/** The files that a restore writes into a data folder. */
const restored = [marker, "blobs", "objects", "tls", "selvedge.db", "selvedge.db.restoring"];
/** Files of the lock, and a folder that the root of a file system has. */
const ignored: ReadonlySet<string> = new Set(["lost+found", "selvedge.lock", "selvedge.pid"]);

/**
 * Runs a restore into an empty data folder. It holds the folder's lock, and a marker keeps nodes from starting
 * there until the restore is done. The files of a failed or killed restore are removed.
 */
export async function inEmptyFolder<T>(dataDir: string, work: () => Promise<T>): Promise<T> {
  using owner = new FolderOwner(dataDir);
  owner.announce();
  if (existsSync(join(dataDir, marker))) await clear(dataDir);
  const [entry] = (await readdir(dataDir)).filter((name) => !ignored.has(name));
  if (entry !== undefined)
    throw new BackupError(
      `Expected an empty data folder but ${dataDir} has ${entry}. Restore into a new folder, ` +
        "and move the old one away when the new one works.",
    );
  await mkdir(join(dataDir, marker), { mode: 0o700 });
  try {
    const result = await work();
    await rm(join(dataDir, marker), { recursive: true });
    return result;
  } catch (error) {
    await clear(dataDir);
    throw error;
  }
}

/** Removes what a restore wrote, the marker last. */
async function clear(dataDir: string): Promise<void> {
  for (const name of restored.toReversed()) await rm(join(dataDir, name), { recursive: true, force: true });
}

/** Throws if a restore into the folder of a database has not finished. */
export function refuseUnfinished(databasePath: string): void {
  const folder = dirname(databasePath);
  if (existsSync(join(folder, marker)))
    throw new UnusableDatabase(
      `A restore into ${folder} did not finish. Run selvedge restore again with this folder.`,
    );
}
