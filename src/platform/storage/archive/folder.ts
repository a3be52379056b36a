import { randomBytes } from "node:crypto";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { orphanAgeMs } from "../blobs.ts";
import { syncPath } from "../durability.ts";
import type { Archive, ArchivedFile, ArchiveStore, ListedFile, NewArchive } from "./archive.ts";
import { BackupError, damaged } from "./errors.ts";
import { contentStream, digestFile, digestLine, manifestFile, openArchive } from "./manifest-files.ts";

const readBytes = 256 * 1024;
/** A node's flush waits for one of these, so they are few, and small enough for a few milliseconds each. */
const flushBytes = 4 * 1024 * 1024;
const partialPattern = /\.partial-[0-9a-f]{8}$/;

/** The files in a folder. */
export class FolderArchive implements Archive {
  readonly shown: string;
  readonly #isFinal: boolean;

  /** `isFinal`: when a write resolves, the file's directory entry is durable too. */
  constructor(folder: string, isFinal = false) {
    this.shown = folder;
    this.#isFinal = isFinal;
  }

  /** A file has another name until it is complete and on disk. */
  async write(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    const file = this.#path(path);
    const partial = `${file}.partial-${randomBytes(4).toString("hex")}`;
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    try {
      await writeNew(partial, content);
      await rename(partial, file);
      if (this.#isFinal) await syncPath(dirname(file));
    } catch (error) {
      await rm(partial, { force: true });
      throw error;
    }
  }

  async read(path: string): Promise<ArchivedFile | undefined> {
    const file = await open(this.#path(path)).catch(missing);
    if (file === undefined) return undefined;
    const { size } = await file.stat();
    return { sizeBytes: size, stream: file.createReadStream({ highWaterMark: readBytes }) };
  }

  async remove(path: string): Promise<void> {
    await rm(this.#path(path), { force: true });
  }

  async *list(prefix: string): AsyncGenerator<ListedFile> {
    for (const entry of (await readdir(this.#path(prefix), { withFileTypes: true }).catch(missing)) ?? []) {
      const path = prefix + entry.name;
      if (entry.isDirectory()) yield* this.list(`${path}/`);
      if (!entry.isFile() || partialPattern.test(path)) continue;
      const found = await stat(this.#path(path)).catch(missing);
      if (found !== undefined) yield { path, sizeBytes: found.size, ageMs: Date.now() - found.mtimeMs };
    }
  }

  async folders(prefix: string): Promise<string[]> {
    const entries = await readdir(this.#path(prefix), { withFileTypes: true }).catch(missing);
    return (entries ?? []).filter((entry) => entry.isDirectory()).map(({ name }) => name);
  }

  /** Paths come from lists in archives, which may be forged. */
  #path(path: string): string {
    if (/(^|\/)\.\.?(\/|$)|\0/.test(path)) throw damaged(path, "is not a valid path of a file");
    return join(this.shown, path);
  }
}

/** A folder of backups, each in a folder with its name. */
export class FolderArchiveStore implements ArchiveStore {
  readonly shown: string;
  readonly files: Archive;

  constructor(folder: string) {
    this.shown = folder;
    this.files = new FolderArchive(folder, true);
  }

  /** Writes an archive under another name and renames it at the end, so the name is absent or complete. */
  async begin(name: string): Promise<NewArchive> {
    const target = join(this.shown, name);
    await checkTarget(target);
    await removeAbandoned(this.shown);
    const folder = `${target}.partial-${randomBytes(4).toString("hex")}`;
    await mkdir(folder, { mode: 0o700 });
    const files = new FolderArchive(folder);
    return {
      files,
      async complete(manifest) {
        await files.write(manifestFile, contentStream(manifest));
        await files.write(digestFile, contentStream(digestLine(manifest)));
        await syncFolders(folder);
        await rename(folder, target);
        await syncPath(dirname(target));
      },
      discard: async () => rm(folder, { recursive: true, force: true }),
    };
  }

  async open(name: string): Promise<{ files: Archive; manifest: string }> {
    const folder = join(this.shown, name);
    return openArchive(new FolderArchive(folder), (run) => new FolderArchive(join(folder, run)));
  }

  async names(): Promise<string[]> {
    const names = await this.files.folders("");
    return names.filter((name) => !partialPattern.test(name));
  }

  async remove(name: string): Promise<void> {
    // The rename comes first, so that an interrupted removal leaves no folder that looks complete.
    const doomed = join(this.shown, `${name}.partial-${randomBytes(4).toString("hex")}`);
    await rename(join(this.shown, name), doomed);
    await rm(doomed, { recursive: true });
  }

  async removeAttempts(name: string): Promise<void> {
    for (const entry of await readdir(this.shown))
      if (entry.startsWith(`${name}.`) && partialPattern.test(entry))
        await rm(join(this.shown, entry), { recursive: true, force: true });
  }

  async close(): Promise<void> {}
}

/** Flushes every few megabytes, because a node's own flushes wait behind a long one on the same disk. */
async function writeNew(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    let unflushedBytes = 0;
    for await (const chunk of content) {
      await file.appendFile(chunk);
      unflushedBytes += chunk.length;
      if (unflushedBytes < flushBytes) continue;
      await file.datasync();
      unflushedBytes = 0;
    }
    await file.datasync();
  } finally {
    await file.close();
  }
}

/** Throws if the target exists, or if no folder can be renamed to it. */
async function checkTarget(target: string): Promise<void> {
  const parent = await stat(dirname(target)).catch(() => undefined);
  if (parent === undefined) throw new BackupError(`Expected the folder ${dirname(target)} to exist.`);
  const found = await stat(target).catch(() => undefined);
  if (found === undefined) return;
  if (!found.isDirectory() || (await readdir(target)).length > 0)
    throw new BackupError(`Expected no files at ${target}. Give each backup a name of its own.`);
  if (found.dev !== parent.dev)
    throw new BackupError(`Expected a new folder within ${target}, which is a file system of its own.`);
}

/** Removes the files of killed backups. */
async function removeAbandoned(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!partialPattern.test(name)) continue;
    const found = await stat(join(parent, name)).catch(missing);
    if (found !== undefined && found.mtimeMs < Date.now() - orphanAgeMs)
      await rm(join(parent, name), { recursive: true, force: true });
  }
}

/** Flushes a folder and all folders in it, which makes their entries durable. */
async function syncFolders(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true }))
    if (entry.isDirectory()) await syncFolders(join(folder, entry.name));
  await syncPath(folder);
}

function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
  throw error;
}
