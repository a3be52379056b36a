import { chmodSync, existsSync, lstatSync, renameSync, statSync, writeFileSync } from "node:fs";
import { chmod, lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";

const others = 0o077;
const sticky = 0o1000;
/**
 * Folders that the program creates in its data folder, besides the database. The data folder may contain
 * other files.
 */
const ownFolders = ["blobs", "cache", "tls"];

/**
 * Removes other users' access to a data folder, which may have existed before, and to the program's files in
 * it. The folder and the database are closed synchronously, deeper files when the promise resolves. Shared
 * folders such as /tmp stay as they are.
 */
export async function closeDataFolder(folder: string, logger: Logger): Promise<void> {
  const { mode, uid } = statSync(folder);
  if ((mode & sticky) !== 0 || uid !== process.getuid?.())
    logger.warn({ folder }, "the data folder is shared with other users: choose a separate folder");
  else if ((mode & others) !== 0) chmodSync(folder, mode & 0o700);
  closeDatabase(join(folder, "selvedge.db"));
  for (const name of ownFolders) await closeFolder(join(folder, name));
}

/** Removes other users' access to the files of a SQLite database. */
export function closeDatabase(path: string): void {
  for (const file of [path, `${path}-wal`, `${path}-shm`]) {
    if (!existsSync(file)) continue;
    const { mode } = lstatSync(file);
    if ((mode & others) !== 0) chmodSync(file, mode & 0o700);
  }
}

/**
 * Closes the content before the folder itself, so that a closed folder is known to be complete and is
 * skipped.
 */
async function closeFolder(folder: string): Promise<void> {
  const found = await lstat(folder).catch(() => undefined);
  if (found?.isDirectory() !== true || (found.mode & others) === 0) return;
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await closeFolder(path);
    else if (entry.isFile()) await close(path);
  }
  await chmod(folder, found.mode & 0o700);
}

async function close(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined); // it may have been deleted concurrently
  if (found !== undefined && (found.mode & others) !== 0) await chmod(path, found.mode & 0o700);
}

/** Writes a file with secrets atomically, readable by its owner alone. */
export function writePrivate(path: string, content: string): void {
  const temporary = `${path}.${process.pid}.tmp`;
  writeFileSync(temporary, content, { mode: 0o600 });
  renameSync(temporary, path);
}

/** Writes a file without secrets atomically, readable by all: a process of another user may wait for it. */
export function writeForOthers(path: string, content: string): void {
  const temporary = `${path}.${process.pid}.tmp`;
  writeFileSync(temporary, content);
  chmodSync(temporary, 0o644);
  renameSync(temporary, path);
}
