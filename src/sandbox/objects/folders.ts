import { chmodSync, chownSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { readdir, rm, rmdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { cellUser } from "../process/launch.ts";

const namePattern = /^[0-9a-f]{32}$/;

/** The folders of namespaces of objects, one for each, in which workerd keeps a database for each object. */
export class ObjectFolders {
  readonly path: string;
  #isOpen = false;
  /** By namespace. With the test kit, the next namespace can have the same id. */
  readonly #removals = new Map<string, Promise<void>>();

  /** `path` need not exist. Cells start in other folders, so it is made absolute. */
  constructor(path: string) {
    this.path = resolve(path);
  }

  /** Creates the folders of namespaces, and gives them to the user of cells. Waits until earlier ones are removed. */
  async create(namespaces: readonly string[]): Promise<void> {
    await Promise.allSettled(namespaces.map(async (id) => this.#removals.get(id)));
    this.#open();
    const user = cellUser();
    for (const namespace of namespaces) {
      const path = join(this.path, namespace);
      mkdirSync(path, { recursive: true, mode: 0o700 });
      if (user !== undefined) giveTo(user, path);
    }
  }

  /** Cells of another user must pass through the folders above, but cannot list them. */
  #open(): void {
    if (this.#isOpen) return;
    const mayPass = cellUser() !== undefined;
    mkdirSync(this.path, { recursive: true, mode: 0o700 });
    if (mayPass) {
      for (const path of [this.path, dirname(this.path)]) chmodSync(path, statSync(path).mode | 0o011);
      const closed = closedAbove(this.path);
      if (closed !== undefined)
        throw new Error(
          `The user of cells cannot pass through ${closed}: choose another data folder, or give that folder the mode 0711`,
        );
    }
    this.#isOpen = true;
  }

  async list(): Promise<string[]> {
    const names = await readdir(this.path).catch(() => []);
    return names.filter((name) => namePattern.test(name));
  }

  async remove(namespace: string): Promise<void> {
    const removal = rm(join(this.path, namespace), { recursive: true, force: true });
    this.#removals.set(namespace, removal);
    try {
      await removal;
    } finally {
      if (this.#removals.get(namespace) === removal) this.#removals.delete(namespace);
    }
  }

  /** Removes folders of namespaces that no longer exist, except some. */
  async sweep(
    exists: (namespaces: readonly string[]) => Promise<ReadonlySet<string>>,
    except: () => ReadonlySet<string>,
  ): Promise<void> {
    const found = await this.list();
    const existing = await exists(found);
    const kept = except();
    for (const id of found) if (!existing.has(id) && !kept.has(id)) await this.remove(id);
  }

  /** Removes folders that nothing was written to. */
  async removeEmpty(namespaces: readonly string[]): Promise<void> {
    for (const namespace of namespaces) await rmdir(join(this.path, namespace)).catch(() => {});
  }
}

/** Gives a folder to a user. A restore creates folders with files of this program's own user. */
function giveTo(user: number, path: string): void {
  if (statSync(path).uid === user) return;
  for (const name of readdirSync(path)) chownSync(join(path, name), user, user);
  chownSync(path, user, user);
}

/** The first folder above a path that other users cannot pass through. */
function closedAbove(path: string): string | undefined {
  for (let at = path; at !== dirname(at); at = dirname(at)) if ((statSync(at).mode & 0o001) === 0) return at;
  return undefined;
}
