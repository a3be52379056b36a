import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { ObjectRefusal } from "../errors.ts";
import { isDatabase } from "../../platform/storage/live-files/object-files.ts";
import { keyOf, type ActingObject } from "./standing.ts";

export interface SizeLimits {
  /** Of the databases of one object, with its facets. */
  objectBytesMax: number;
  /** Of all objects and databases of one account together; undefined for no limit. */
  accountBytesMax: number | undefined;
}

/** The files and owners of objects, and what happens to one that is too large. */
export interface SizeParts {
  /** The folder of all namespaces. */
  folder: string;
  limits: SizeLimits;
  accountOf: (namespace: string) => string | undefined;
  namespacesOf: (accountId: string) => readonly string[];
  /** Ends an object, whose requests in progress get the text. */
  end: (object: ActingObject, text: string) => Promise<void>;
}

/** The public text. */
const fullText = "database or disk is full: SQLITE_FULL";
/** A larger size than this part of the limit is refused: the object is not called any more. */
const refusedAbove = 1.1;
/** SQLite writes over its log after about 4 MiB, unless a transaction is longer. */
const usualLogBytes = 8 * 1024 * 1024;

const everyMs = 1000;
/** Looking takes at most a twentieth of the time. */
const restFactor = 20;
/** An object may work for so long after its last call. */
const activeMs = 60_000;

interface Sizes {
  bytes: number;
  /** By id of object. */
  objects: Map<string, number>;
}

/**
 * Keeps objects within their limits on disk. workerd has no such limit, so the files are looked at. An object above a
 * limit is ended each time that it has grown, so it can be read, and can delete. One that has grown far is refused.
 */
export class ObjectSizes {
  readonly #parts: SizeParts;
  readonly #known = new Map<string, Sizes>();
  /** When objects of a namespace were last called. */
  readonly #usedAt = new Map<string, number>();
  #nextAt = 0;
  /** Objects that are not called until they are smaller, by key. */
  readonly #refused = new Set<string>();

  constructor(parts: SizeParts) {
    this.#parts = parts;
  }

  /** An object is called. Throws an ObjectRefusal if it is too large for that. */
  use(object: ActingObject): void {
    this.#usedAt.set(object.namespace, performance.now());
    if (this.#refused.size > 0 && this.#refused.has(keyOf(object))) throw new ObjectRefusal(fullText);
  }

  /** Looks at the namespaces whose objects were called lately, and at busy ones, if it is time. */
  async lookIfDue(now: number, busy: () => Iterable<string>): Promise<void> {
    if (now < this.#nextAt) return;
    this.#nextAt = Infinity;
    try {
      for (const namespace of busy()) this.#usedAt.set(namespace, now);
      for (const [namespace, usedAt] of this.#usedAt)
        if (now - usedAt > activeMs) this.#usedAt.delete(namespace);
      await this.#look([...this.#usedAt.keys()]);
    } finally {
      const doneAt = performance.now();
      this.#nextAt = doneAt + Math.max(everyMs, (doneAt - now) * restFactor);
    }
  }

  async #look(namespaces: readonly string[]): Promise<void> {
    for (const namespace of namespaces) {
      const before = this.#known.get(namespace);
      const sizes = await this.#read(namespace);
      const accountId = this.#parts.accountOf(namespace);
      const isAccountFull = accountId !== undefined && (await this.#isFull(accountId));
      for (const [id, bytes] of sizes.objects) {
        const hasGrown = bytes > (before?.objects.get(id) ?? 0);
        await this.#judge({ namespace, id }, bytes, { hasGrown, isAccountFull });
      }
    }
  }

  /** An object was deleted or restored: it may be called until the next look. */
  async changed({ namespace, id }: ActingObject): Promise<void> {
    this.#refused.delete(keyOf({ namespace, id }));
    if (this.#known.has(namespace)) await this.#read(namespace);
  }

  forget(namespace: string): void {
    this.#known.delete(namespace);
    this.#usedAt.delete(namespace);
    for (const key of this.#refused) if (key.startsWith(namespace)) this.#refused.delete(key);
  }

  async #judge(
    object: ActingObject,
    bytes: number,
    { hasGrown, isAccountFull }: { hasGrown: boolean; isAccountFull: boolean },
  ): Promise<void> {
    const { objectBytesMax } = this.#parts.limits;
    const isFar = bytes > objectBytesMax * refusedAbove;
    if (isFar || (isAccountFull && hasGrown)) this.#refused.add(keyOf(object));
    else if (!isAccountFull) this.#refused.delete(keyOf(object));
    if (hasGrown && (bytes > objectBytesMax || isAccountFull)) await this.#parts.end(object, fullText);
  }

  async #isFull(accountId: string): Promise<boolean> {
    const { accountBytesMax } = this.#parts.limits;
    if (accountBytesMax === undefined) return false;
    let bytes = 0;
    for (const namespace of this.#parts.namespacesOf(accountId))
      bytes += (this.#known.get(namespace) ?? (await this.#read(namespace))).bytes;
    return bytes > accountBytesMax;
  }

  async #read(namespace: string): Promise<Sizes> {
    const folder = join(this.#parts.folder, namespace);
    const sizes: Sizes = { bytes: 0, objects: new Map() };
    for (const name of await readdir(folder).catch(() => [])) {
      if (!isDatabase(name)) continue;
      const [database, log] = await Promise.all([
        bytesOf(join(folder, name)),
        bytesOf(join(folder, `${name}-wal`)),
      ]);
      const bytes = database + (log > usualLogBytes ? log : 0);
      const id = name.slice(0, name.indexOf("."));
      sizes.bytes += bytes;
      sizes.objects.set(id, (sizes.objects.get(id) ?? 0) + bytes);
    }
    this.#known.set(namespace, sizes);
    return sizes;
  }
}

const bytesOf = async (path: string): Promise<number> => (await stat(path).catch(() => undefined))?.size ?? 0;
