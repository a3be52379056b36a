import { copyFile, link, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { copyDatabase } from "../../platform/storage/live-files/copy-database.ts";
import { isDatabase, objectFiles, objectsFolderOf } from "../../platform/storage/live-files/object-files.ts";
import { ConfigError } from "../../platform/config/config.ts";

/** The Durable Objects of a platform under test. */
interface TestedObjects {
  /** The folders of namespaces. */
  list(): Promise<string[]>;
  /** Ends all objects. */
  endAll(): Promise<void>;
  /** Removes the files of a namespace. */
  forget(namespace: string): Promise<void>;
}

/** A file beside the database, by its path below the data folder. */
export interface SavedFile {
  path: string;
  content: Uint8Array;
}

const savedPath = /^(?:blobs(?:\/(?!\.)[\w.-]{1,255}){1,8}|objects\/[0-9a-f]{32}\/[0-9a-f]{64}[\w.]{0,20})$/;

/**
 * The files beside the database: the bytes of images, assets and large values, and the databases of Durable Objects and
 * of D1. Files with bytes never change, so a copy is a hard link. Databases are copied page by page while they are in
 * use.
 */
export class KeptFiles {
  readonly #folder: string;
  readonly #copies: string;
  readonly #objects: TestedObjects;

  /** `folder` is the data folder. */
  constructor(folder: string, objects: TestedObjects) {
    this.#folder = folder;
    this.#copies = join(folder, "test-states");
    this.#objects = objects;
  }

  /** Removes the copies of an earlier process, and writes the files of a saved state. Call before any file is used. */
  async open(saved: readonly SavedFile[]): Promise<void> {
    await rm(this.#copies, { recursive: true, force: true });
    for (const { path, content } of saved) {
      if (!savedPath.test(path))
        throw new ConfigError(`Expected paths of blobs and objects in the saved state but found ${path}`);
      await mkdir(dirname(join(this.#folder, path)), { recursive: true, mode: 0o700 });
      await writeFile(join(this.#folder, path), content, { mode: 0o600 });
    }
  }

  /** Keeps a copy under a number. */
  async keep(copy: number): Promise<void> {
    const to = this.#copyOf(copy);
    for (const path of await this.#blobs(this.#folder))
      await linkTo(join(this.#folder, path), join(to, path));
    await this.#copyObjects(to);
  }

  /** Replaces the files by those of a copy. Ends running objects. */
  async bringBack(copy: number): Promise<void> {
    const from = this.#copyOf(copy);
    const kept = new Set(await this.#blobs(from));
    for (const path of await this.#blobs(this.#folder)) {
      const isSame = kept.has(path) && (await areSame(join(this.#folder, path), join(from, path)));
      if (isSame) kept.delete(path);
      else await rm(join(this.#folder, path), { force: true });
    }
    for (const path of kept) await linkTo(join(from, path), join(this.#folder, path));
    const namespaces = await this.#objects.list();
    if (namespaces.length > 0) await this.#objects.endAll();
    for (const namespace of namespaces) await this.#objects.forget(namespace);
    for await (const { namespace, name } of objectFiles(objectsFolderOf(from))) {
      const path = join("objects", namespace, name);
      await mkdir(dirname(join(this.#folder, path)), { recursive: true, mode: 0o700 });
      await copyFile(join(from, path), join(this.#folder, path));
    }
  }

  async drop(copy: number): Promise<void> {
    await rm(this.#copyOf(copy), { recursive: true, force: true });
  }

  /** The files of a copy; without one, as they are now. */
  async save(copy?: number): Promise<SavedFile[]> {
    if (copy !== undefined) return this.#read(this.#copyOf(copy), this.#copyOf(copy));
    const aside = join(this.#copies, "saved");
    try {
      await this.#copyObjects(aside);
      return await this.#read(this.#folder, aside);
    } finally {
      await rm(aside, { recursive: true, force: true });
    }
  }

  async #read(blobsIn: string, objectsIn: string): Promise<SavedFile[]> {
    const files: SavedFile[] = [];
    for (const path of await this.#blobs(blobsIn))
      files.push({ path, content: await readFile(join(blobsIn, path)) });
    for await (const { namespace, name } of objectFiles(objectsFolderOf(objectsIn))) {
      const path = `objects/${namespace}/${name}`;
      files.push({ path, content: await readFile(join(objectsIn, path)) });
    }
    return files;
  }

  #copyOf(copy: number): string {
    return join(this.#copies, String(copy));
  }

  async #copyObjects(to: string): Promise<void> {
    for await (const { namespace, name } of objectFiles(objectsFolderOf(this.#folder))) {
      const path = join("objects", namespace, name);
      await mkdir(dirname(join(to, path)), { recursive: true, mode: 0o700 });
      if (isDatabase(name)) await copyDatabase(join(this.#folder, path), join(to, path));
      else await copyFile(join(this.#folder, path), join(to, path));
    }
  }

  /** The paths of complete blobs below a folder. */
  async #blobs(folder: string): Promise<string[]> {
    const found = await readdir(join(folder, "blobs"), { recursive: true, withFileTypes: true }).catch(
      () => [],
    );
    const base = join(folder, "blobs");
    return found
      .filter(
        (entry) => entry.isFile() && entry.parentPath !== base && entry.parentPath !== join(base, "incoming"),
      )
      .map((entry) => join("blobs", entry.parentPath.slice(base.length + 1), entry.name));
  }
}

async function linkTo(file: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 });
  await link(file, to).catch((error: unknown) => {
    // Deleted meanwhile.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  });
}

async function areSame(a: string, b: string): Promise<boolean> {
  const [one, other] = await Promise.all([stat(a), stat(b)]);
  return one.ino === other.ino;
}
