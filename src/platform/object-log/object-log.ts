import { lstatSync, readFileSync, watch, type FSWatcher } from "node:fs";
import { join } from "node:path";
import type { Logger } from "pino";
import type { Archive } from "../storage/archive/archive.ts";
import {
  bytesOf,
  isDatabase,
  isFacets,
  objectFiles,
  readFlags,
  type ObjectFile,
} from "../storage/live-files/object-files.ts";
import { unawaited } from "../util/uncaught.ts";
import type { Catalog, FileState } from "./catalog.ts";
import { FollowedFile } from "./followed-file.ts";
import { LastEntries } from "./last-entries.ts";
import { ownOrder, type LogOrder } from "./log-order.ts";
import { pushBase, smallBytes, writeBase } from "./make-base.ts";
import type { Entry } from "./segment.ts";
import { Shipper } from "./shipper.ts";
import { msOf, Stamps, type Stamp } from "./stamps.ts";

export interface ObjectLogOptions {
  /** The folder of the namespaces of objects. */
  folder: string;
  catalog: Catalog;
  /** The store that the log is shipped to. */
  files: Archive;
  /** Default: the log of this node alone. */
  order?: LogOrder;
  /** Resolves when the catalog has everything that is in the store. */
  ready: () => Promise<void>;
  everyMs: number;
  logger: Logger;
}

const readDelayMs = 10;
const retryMs = 2000;
/** More bytes than this are shipped before the interval ends. */
const shipBytes = 8 * 1024 * 1024;
/** While the store cannot be reached, this much waits in memory. If more comes, the log gets a gap. */
const waitingBytesMax = 256 * 1024 * 1024;
/** How long `flush`, `whenShipped` and `settle` wait for the store. */
const flushMs = 30_000;
const suffix = "-wal";

/**
 * Ships the write-ahead logs of objects' databases, which cells write, to a store. The kernel reports which
 * logs change, so objects that do not write cost nothing and have no file open.
 */
export class ObjectLog {
  readonly #options: ObjectLogOptions;
  readonly #order: LogOrder;
  readonly #stamps: Stamps;
  readonly #shipper: Shipper;
  readonly #watchers = new Map<string, FSWatcher>();
  /** By object, then by file name. */
  readonly #followed = new Map<string, Map<string, FollowedFile>>();
  readonly #changed = new Map<string, ObjectFile>();
  readonly #lastEntries = new LastEntries();
  #readTimer: NodeJS.Timeout | undefined;
  #shipTimer: NodeJS.Timeout | undefined;
  readonly #large: FollowedFile[] = [];
  #copying: Promise<void> | undefined;
  #isClosed = false;
  /** Wall-clock time until which all commits are in the store, except those in a gap. */
  shippedMs: number | undefined;

  constructor(options: ObjectLogOptions) {
    this.#options = options;
    const { catalog, files, ready, order = ownOrder(catalog) } = options;
    this.#order = order;
    this.#stamps = new Stamps(catalog.lastStamp);
    this.#shipper = new Shipper({ catalog, files, order, ready, statesOf: (all) => this.#statesOf(all) });
  }

  get stamps(): Stamps {
    return this.#stamps;
  }

  /** Ships logs that earlier processes left, and files that are missing in the store. */
  async catchUp(isOwn: (namespace: string) => boolean = () => true): Promise<void> {
    const { folder, catalog } = this.#options;
    let count = 0;
    for await (const file of objectFiles(folder)) {
      if (this.#isClosed) return;
      if (!isOwn(file.namespace)) continue;
      const path = join(folder, file.namespace, file.name);
      const isKnown = isFacets(file.name)
        ? catalog.baseOf(file, this.#stamps.last) !== undefined
        : catalog.stateOf(file) !== undefined && bytesOf(`${path}${suffix}`) === 0;
      if (!isKnown) this.#readFile(file);
      if (!this.#watchers.has(file.namespace)) this.#followedOf(file)?.close();
      if (++count % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Call this before cells write the files of these namespaces. */
  follow(namespaces: readonly string[]): void {
    for (const namespace of namespaces) {
      if (this.#watchers.has(namespace)) continue;
      const watcher = watch(join(this.#options.folder, namespace), (event, changed) => {
        const name = changed?.endsWith(suffix) === true ? changed.slice(0, -suffix.length) : changed;
        if (name === null || !(isDatabase(name) || isFacets(name))) return;
        // The database itself matters only when it is deleted.
        if (name !== changed || isFacets(name) || event === "rename") this.#note({ namespace, name });
      });
      watcher.on("error", () => this.#watchers.delete(namespace)); // the folder was removed
      watcher.unref();
      this.#watchers.set(namespace, watcher);
    }
  }

  /** Call this when the cell of these namespaces has ended. Reads its last writes. */
  unfollow(namespaces: readonly string[]): void {
    for (const namespace of namespaces) {
      this.#watchers.get(namespace)?.close();
      this.#watchers.delete(namespace);
    }
    this.#readChanged();
    const ended = new Set(namespaces);
    for (const files of this.#followed.values())
      for (const each of files.values())
        if (ended.has(each.file.namespace)) {
          this.#readOne(each);
          each.close();
        }
  }

  /** Call this when an object answers. Its commits so far are before the returned stamp, later ones after it. */
  noteAnswer(namespace: string, id: string): Stamp {
    for (const name of [`${id}.sqlite`, `${id}.1.sqlite`]) {
      const file = { namespace, name };
      const isFollowed = this.#followedOf(file) !== undefined;
      if (isFollowed || bytesOf(this.#pathOf(file) + suffix) > 0) this.#readFile(file);
    }
    return this.#stamps.next();
  }

  /** Resolves when all commits of an object are in the store. Rejects when that takes too long. */
  async flush(namespace: string, id: string): Promise<void> {
    // The kernel's events for all earlier writes arrive within one turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    this.noteAnswer(namespace, id);
    this.#readChanged();
    const until = performance.now() + flushMs;
    await this.settle();
    // Without a base, the frames are useless.
    while (this.#filesOf(namespace, id).some((each) => !each.hasBase || each.isBehind)) {
      if (performance.now() > until) throw new Error("The object could not be copied to the log in time");
      await new Promise((resolve) => setTimeout(resolve, retryMs / 10));
      for (const each of this.#filesOf(namespace, id)) this.#readOne(each);
      await this.settle();
    }
  }

  /** Resolves when everything that was written to these namespaces is in the store. Rejects when that takes too long. */
  async whenShipped(namespaces: ReadonlySet<string>): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve)); // as in `flush`
    this.#readChanged();
    const until = performance.now() + flushMs;
    const last = this.#lastEntries.of(namespaces); // later writes need not be shipped
    while (this.#shipper.shipped < last) await this.settle();
    for (let late; (late = this.#withoutBase(namespaces)).length > 0;) {
      if (performance.now() > until) throw new Error("Objects could not be copied to the log in time");
      await new Promise((resolve) => setTimeout(resolve, retryMs / 10));
      for (const each of late) this.#readOne(each);
      await this.settle();
    }
  }

  /** Files that cannot be restored from the log yet. */
  #withoutBase(namespaces: ReadonlySet<string>): FollowedFile[] {
    const found: FollowedFile[] = [];
    for (const files of this.#followed.values())
      for (const each of files.values())
        if ((!each.hasBase || each.isBehind) && namespaces.has(each.file.namespace)) found.push(each);
    return found;
  }

  /** Resolves when all frames that were read are in the store. Rejects when that takes too long. */
  async settle(): Promise<void> {
    const until = performance.now() + flushMs;
    while (!this.#shipper.isIdle)
      try {
        await this.#ship();
        return;
      } catch (error) {
        if (performance.now() > until) throw error;
        await new Promise((resolve) => setTimeout(resolve, retryMs / 10));
      }
  }

  /** Call this after a file was replaced or deleted while no cell had it open. */
  noteReplaced(file: ObjectFile): void {
    this.#drop(file);
    this.#options.catalog.removeState(file);
    if (bytesOf(this.#pathOf(file)) > 0) {
      const followed = this.#begin(file);
      followed.noteGap(); // lasts until there is a base
      this.#readOne(followed);
    } else this.#push({ ...file, kind: "gone", stamp: this.#stamps.next(), bytes: Buffer.alloc(0) });
  }

  /** Call this after the data of a namespace was deleted for good. */
  forget(namespace: string): void {
    this.unfollow([namespace]);
    for (const file of this.#options.catalog.files(namespace)) {
      this.#drop(file);
      this.#options.catalog.removeState(file);
      this.#push({ ...file, kind: "gone", stamp: this.#stamps.next(), bytes: Buffer.alloc(0) });
    }
  }

  /** Forgets what it knows of files: other nodes may write their log from now on. */
  reset(): void {
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
    this.#changed.clear();
    for (const files of this.#followed.values()) for (const { file } of [...files.values()]) this.#drop(file);
    this.#large.length = 0;
    this.#shipper.reset();
    this.#options.catalog.removeStates();
  }

  async close(): Promise<void> {
    this.unfollow([...this.#watchers.keys()]);
    this.#isClosed = true;
    clearTimeout(this.#readTimer);
    clearTimeout(this.#shipTimer);
    await this.#copying;
    await this.#ship().catch(() => {}); // the next start continues
    for (const files of this.#followed.values()) for (const each of files.values()) each.close();
  }

  #pathOf({ namespace, name }: ObjectFile): string {
    return join(this.#options.folder, namespace, name);
  }

  #followedOf({ namespace, name }: ObjectFile): FollowedFile | undefined {
    return this.#followed.get(objectOf(namespace, name))?.get(name);
  }

  #note(file: ObjectFile): void {
    this.#changed.set(`${file.namespace}/${file.name}`, file);
    if (this.#readTimer !== undefined || this.#isClosed) return;
    this.#readTimer = setTimeout(() => this.#readChanged(), readDelayMs);
  }

  #readChanged(): void {
    clearTimeout(this.#readTimer);
    this.#readTimer = undefined;
    const changed = [...this.#changed.values()];
    this.#changed.clear();
    for (const file of changed) this.#readFile(file);
  }

  #readFile(file: ObjectFile): void {
    if (isFacets(file.name)) return this.#readFacets(file);
    const followed = this.#followedOf(file);
    if (lstatSync(this.#pathOf(file), { throwIfNoEntry: false }) === undefined) {
      const isKnown = followed !== undefined || this.#options.catalog.stateOf(file) !== undefined;
      return isKnown ? this.noteReplaced(file) : undefined;
    }
    this.#readOne(followed ?? this.#begin(file));
  }

  #begin(file: ObjectFile): FollowedFile {
    const state = this.#options.catalog.stateOf(file);
    const followed = new FollowedFile({ file, path: this.#pathOf(file), state }, this.#stamps, (entry) =>
      this.#push(entry),
    );
    const object = objectOf(file.namespace, file.name);
    const files = this.#followed.get(object);
    if (files === undefined) this.#followed.set(object, new Map([[file.name, followed]]));
    else files.set(file.name, followed);
    return followed;
  }

  #filesOf(namespace: string, id: string): FollowedFile[] {
    return [...(this.#followed.get(`${namespace}/${id}`)?.values() ?? [])];
  }

  #readFacets(file: ObjectFile): void {
    const path = this.#pathOf(file);
    if (bytesOf(path) === 0) return;
    const stamp = this.#stamps.next();
    this.#push({
      ...file,
      kind: "base",
      start: stamp,
      stamp,
      bytes: readFileSync(path, { flag: readFlags }),
    });
  }

  #readOne(followed: FollowedFile): void {
    const wasOpen = followed.isOpen;
    followed.read();
    if (followed.isBehind) setTimeout(() => this.#note(followed.file), retryMs).unref();
    // Shipping stores the file's state, so that the log continues when the object writes again.
    if (wasOpen && !followed.isOpen && !this.#isClosed) this.#shipTimer ??= this.#shipLater();
    const bytes = bytesOf(followed.path);
    if (bytes === 0 || !followed.needsBase(bytes, Date.now(), msOf)) return;
    if (bytes <= smallBytes) pushBase(followed, this.#stamps, (entry) => this.#push(entry));
    else this.#copyLarge(followed);
  }

  /** Queues a large file. Large files are copied one after another. */
  #copyLarge(followed: FollowedFile): void {
    followed.isCopied = true;
    this.#large.push(followed);
    this.#copying ??= this.#copyAll().finally(() => (this.#copying = undefined));
    unawaited(this.#copying);
  }

  async #copyAll(): Promise<void> {
    const { files, logger } = this.#options;
    const parts = { order: this.#order, files, stamps: this.#stamps, ship: async () => this.#ship() };
    for (;;) {
      const followed = this.#large.shift();
      if (followed === undefined) return;
      if (this.#isClosed) continue; // the next start copies it
      try {
        if (!(await writeBase(followed, parts))) this.#note(followed.file);
        this.#tidy();
      } catch (error) {
        logger.error({ err: error }, "a database of an object could not be copied to the log of objects");
        await new Promise((resolve) => setTimeout(resolve, retryMs).unref());
        this.#note(followed.file);
      }
    }
  }

  #push(entry: Entry): void {
    const shipper = this.#shipper;
    this.#lastEntries.note(entry.namespace, shipper.push(entry));
    if (shipper.waitingBytes > waitingBytesMax) this.#giveUp();
    if (this.#isClosed) return;
    if (shipper.waitingBytes > shipBytes) this.#shipSoon(0);
    else this.#shipTimer ??= this.#shipLater();
  }

  #shipLater(delayMs = this.#options.everyMs): NodeJS.Timeout {
    return setTimeout(() => {
      this.#shipTimer = undefined;
      this.#readChanged();
      unawaited(this.#shipOrRetry());
    }, delayMs);
  }

  #shipSoon(delayMs: number): void {
    clearTimeout(this.#shipTimer);
    this.#shipTimer = this.#shipLater(delayMs);
  }

  async #shipOrRetry(): Promise<void> {
    try {
      await this.#ship();
    } catch (error) {
      this.#options.logger.error({ err: error }, "the log of objects could not be shipped");
      if (!this.#isClosed) this.#shipSoon(retryMs);
    }
  }

  async #ship(): Promise<void> {
    const ms = Date.now();
    await this.#shipper.ship();
    this.shippedMs = ms;
    this.#tidy();
  }

  /** Drops the waiting frames, because the store could not be reached for too long. */
  #giveUp(): void {
    for (const file of this.#shipper.drop()) this.#followedOf(file)?.noteGap();
  }

  /** Stops following files that are no longer written, and stores their states. */
  #tidy(): void {
    if (!this.#shipper.isIdle) return;
    this.#lastEntries.clear();
    const ended: FollowedFile[] = [];
    for (const [object, files] of this.#followed) {
      for (const [name, each] of files)
        if (!each.isOpen && !each.isCopied && each.hasBase) {
          ended.push(each);
          files.delete(name);
        }
      if (files.size === 0) this.#followed.delete(object);
    }
    if (ended.length > 0)
      this.#options.catalog.putStates(ended.map(({ file, state }) => ({ ...file, state })));
  }

  #drop({ namespace, name }: ObjectFile): void {
    const object = objectOf(namespace, name);
    const files = this.#followed.get(object);
    const followed = files?.get(name);
    if (followed === undefined) return;
    followed.epoch += 1;
    followed.close();
    files!.delete(name);
    if (files!.size === 0) this.#followed.delete(object);
  }

  #statesOf(all: readonly ObjectFile[]): (ObjectFile & { state: FileState })[] {
    return all.flatMap((file) => {
      const followed = this.#followedOf(file);
      return followed === undefined ? [] : [{ ...file, state: followed.state }];
    });
  }
}

/** The key of the object that a file belongs to. */
const objectOf = (namespace: string, name: string): string =>
  `${namespace}/${name.slice(0, name.indexOf("."))}`;
