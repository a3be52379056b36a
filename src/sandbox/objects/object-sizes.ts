import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { ObjectRefusal } from "../errors.ts";
import { isDatabase } from "../../platform/storage/live-files/object-files.ts";
import { objectKeyOf, type ActingObject } from "./standing.ts";

export interface SizeLimits {
  /** Total size of the databases of one object, including its facets. */
  objectBytesMax: number;
  /** Total size of all objects and databases of one account; undefined for no limit. */
  accountBytesMax: number | undefined;
}

/** The files and owners of objects, and the way to end an object that is too large. */
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
/** Calls of an object are refused while its size exceeds its limit by this factor. */
const refusedAbove = 1.1;
/** SQLite writes over its log after about 4 MiB, unless a transaction is longer. */
const usualLogBytes = 8 * 1024 * 1024;

const everyMs = 1000;
/** Pause after a check, as a multiple of its duration: checks take at most a twentieth of the time. */
const restFactor = 20;
/** Time after its last call for which an object may still write. */
const activeMs = 60_000;

interface Sizes {
  bytes: number;
  /** By id of object. */
  objects: Map<string, number>;
}

/**
 * Keeps objects within their limits on disk. workerd has no such limit, so file sizes are checked periodically. An
 * object above a limit is ended each time that it has grown, so that it can still read and delete its data. Calls are
 * refused for an object far above its own limit, and for one that has grown while its account is above its limit.
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

  /** Records a call of an object. Throws an ObjectRefusal if the object is too large to be called. */
  use(object: ActingObject): void {
    this.#usedAt.set(object.namespace, performance.now());
    if (this.#refused.size > 0 && this.#refused.has(objectKeyOf(object))) throw new ObjectRefusal(fullText);
  }

  /** If a check is due, checks the busy namespaces and those whose objects were called lately. */
  async checkIfDue(now: number, busy: () => Iterable<string>): Promise<void> {
    if (now < this.#nextAt) return;
    this.#nextAt = Infinity;
    try {
      for (const namespace of busy()) this.#usedAt.set(namespace, now);
      for (const [namespace, usedAt] of this.#usedAt)
        if (now - usedAt > activeMs) this.#usedAt.delete(namespace);
      await this.#check([...this.#usedAt.keys()]);
    } finally {
      const doneAt = performance.now();
      this.#nextAt = doneAt + Math.max(everyMs, (doneAt - now) * restFactor);
    }
  }

  async #check(namespaces: readonly string[]): Promise<void> {
    for (const namespace of namespaces) {
      const before = this.#known.get(namespace);
      const sizes = await this.#read(namespace);
      const accountId = this.#parts.accountOf(namespace);
      const isAccountFull = accountId !== undefined && (await this.#isFull(accountId));
      for (const [id, bytes] of sizes.objects) {
        // The first look, after a start, does not tell objects that have written from those that were only read.
        const hasGrown = before !== undefined && bytes > (before.objects.get(id) ?? 0);
        await this.#judge({ namespace, id }, bytes, { hasGrown, isAccountFull });
      }
    }
  }

  /** Call when an object was deleted or restored: it may be called until the next check. */
  async changed({ namespace, id }: ActingObject): Promise<void> {
    this.#refused.delete(objectKeyOf({ namespace, id }));
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
    const isOverHardLimit = bytes > objectBytesMax * refusedAbove;
    if (isOverHardLimit || (isAccountFull && hasGrown)) this.#refused.add(objectKeyOf(object));
    else if (!isAccountFull) this.#refused.delete(objectKeyOf(object));
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
