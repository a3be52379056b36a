import { lstatSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "pino";
import type { Archive } from "../storage/archive/archive.ts";
import {
  fileBytes,
  isFacets,
  objectFiles,
  readFlags,
  type ObjectFile,
} from "../storage/live-files/object-files.ts";
import { unawaited } from "../util/uncaught.ts";
import type { Catalog, EndedFile, FileState } from "./catalog.ts";
import { FollowedFile } from "./followed-file.ts";
import { eventsOfWrites, FollowedFiles, isLate } from "./followed-files.ts";
import { LastEntries } from "./last-entries.ts";
import { ownOrder, type LogOrder } from "./log-order.ts";
import { pushBase, smallBytes, writeBase } from "./make-base.ts";
import type { Entry } from "./segment.ts";
import { Shipper } from "./shipper.ts";
import { msOf, Stamps, type Stamp } from "./stamps.ts";
import { WatchedFolders } from "./watched-folders.ts";

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
/** How often files of busy namespaces are read. */
const busyReadMs = 20;
const retryMs = 2000;
/** More bytes than this are shipped before the interval ends. */
const shipBytes = 8 * 1024 * 1024;
/** While the store cannot be reached, this much waits in memory. If more comes, the log gets a gap. */
const waitingBytesMax = 256 * 1024 * 1024;
/** How long `flush`, `whenShipped` and `settle` wait for the store. */
const flushMs = 30_000;
const suffix = "-wal";

/**
 * Ships the write-ahead logs of objects' databases, which cells write, to a store. Objects that do not write cost
 * nothing and have no file open.
 */
export class ObjectLog {
  readonly #options: ObjectLogOptions;
  readonly #order: LogOrder;
  readonly #stamps: Stamps;
  readonly #shipper: Shipper;
  readonly #followed = new FollowedFiles();
  readonly #folders: WatchedFolders;
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
    this.#folders = new WatchedFolders(options.folder, this.#followed, () => this.#readLater(readDelayMs));
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
        : catalog.stateOf(file) !== undefined && fileBytes(`${path}${suffix}`) === 0;
      if (!isKnown) this.#readFile(file);
      if (!this.#folders.has(file.namespace)) this.#followed.get(file)?.close();
      if (++count % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    for (const file of catalog.lostDeletions())
      if (isOwn(file.namespace) && fileBytes(this.#pathOf(file)) === 0) this.noteReplaced(file);
  }

  /** Call this before cells write the files of these namespaces. */
  follow(namespaces: readonly string[]): void {
    for (const namespace of namespaces) this.#folders.add(namespace);
  }

  /** Call this when the cell of these namespaces has ended. Reads its last writes. */
  unfollow(namespaces: readonly string[]): void {
    this.#readChanged();
    for (const namespace of namespaces) this.#folders.delete(namespace);
    const ended = new Set(namespaces);
    for (const each of this.#followed.all())
      if (ended.has(each.file.namespace)) {
        this.#readOne(each);
        each.close();
      }
  }

  /** Call this when an object answers. Its commits so far are before the returned stamp, later ones after it. */
  noteAnswer(namespace: string, id: string): Stamp {
    for (const name of [`${id}.sqlite`, `${id}.1.sqlite`]) {
      const file = { namespace, name };
      const isFollowed = this.#followed.get(file) !== undefined;
      if (isFollowed || fileBytes(this.#pathOf(file) + suffix) > 0) this.#readFile(file);
    }
    return this.#stamps.next();
  }

  /** Resolves when all commits of an object are in the store. Rejects when that takes too long. */
  async flush(namespace: string, id: string): Promise<void> {
    await eventsOfWrites();
    this.noteAnswer(namespace, id);
    this.#readChanged();
    const until = performance.now() + flushMs;
    await this.settle();
    // Without a base, the frames are useless.
    while (this.#followed.ofObject(namespace, id).some(isLate)) {
      if (performance.now() > until) throw new Error("The object could not be copied to the log in time");
      await new Promise((resolve) => setTimeout(resolve, retryMs / 10));
      for (const each of this.#followed.ofObject(namespace, id)) this.#readOne(each);
      await this.settle();
    }
  }

  /** Resolves when everything that was written to these namespaces is in the store. Rejects when that takes too long. */
  async whenShipped(namespaces: ReadonlySet<string>): Promise<void> {
    await eventsOfWrites();
    this.#readChanged();
    const until = performance.now() + flushMs;
    const last = this.#lastEntries.of(namespaces); // later writes need not be shipped
    while (this.#shipper.shipped < last) await this.settle();
    for (let late; (late = this.#followed.late(namespaces)).length > 0;) {
      if (performance.now() > until) throw new Error("Objects could not be copied to the log in time");
      await new Promise((resolve) => setTimeout(resolve, retryMs / 10));
      this.#copy(late);
      await this.settle();
    }
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
    const followed = this.#replaced(file);
    if (followed !== undefined) this.#readOne(followed);
  }

  /** Returns the file, which needs a base; undefined if it was deleted. */
  #replaced(file: ObjectFile): FollowedFile | undefined {
    this.#drop(file);
    this.#options.catalog.removeState(file);
    if (fileBytes(this.#pathOf(file)) > 0) {
      const followed = this.#begin(file);
      followed.noteGap(); // lasts until there is a base
      return followed;
    }
    this.#push({ ...file, kind: "gone", stamp: this.#stamps.next(), bytes: Buffer.alloc(0) });
    return undefined;
  }

  /** Call this when the log lacks entries that it had: of these files, and maybe of those that are followed now. */
  replaceLost(lost: readonly EndedFile[]): void {
    this.#shipper.replace();
    for (const each of this.#followed.all()) each.noteLoss();
    for (const file of lost) {
      if (!this.#order.isOwn(file.namespace) || this.#followed.get(file) !== undefined) continue;
      // Files of other objects are brought here when those are called.
      if (file.isGone || fileBytes(this.#pathOf(file)) > 0) this.#replaced(file);
    }
    this.#copy(this.#followed.late());
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
    this.#folders.clear();
    for (const { file } of this.#followed.all()) this.#drop(file);
    this.#large.length = 0;
    this.#shipper.reset();
    this.#options.catalog.removeStates();
  }

  async close(): Promise<void> {
    this.unfollow(this.#folders.namespaces);
    this.#isClosed = true;
    clearTimeout(this.#readTimer);
    clearTimeout(this.#shipTimer);
    await this.#copying;
    await this.#ship().catch(() => {}); // the next start continues
    for (const each of this.#followed.all()) each.close();
  }

  #pathOf({ namespace, name }: ObjectFile): string {
    return join(this.#options.folder, namespace, name);
  }

  #readLater(delayMs: number): void {
    if (this.#readTimer !== undefined || this.#isClosed) return;
    this.#readTimer = setTimeout(() => this.#readChanged(), delayMs);
  }

  #readChanged(): void {
    clearTimeout(this.#readTimer);
    this.#readTimer = undefined;
    for (const file of this.#folders.look()) this.#readFile(file);
    if (this.#folders.isBusy) this.#readLater(busyReadMs);
  }

  #readFile(file: ObjectFile): void {
    if (!this.#order.isOwn(file.namespace)) return; // another node writes its log, perhaps of a newer file
    if (isFacets(file.name)) return this.#readFacets(file);
    const followed = this.#followed.get(file);
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
    this.#followed.add(followed);
    return followed;
  }

  #readFacets(file: ObjectFile): void {
    const path = this.#pathOf(file);
    if (fileBytes(path) === 0) return;
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
    this.#followed.noteLate(followed);
    if (followed.isBehind) setTimeout(() => this.#folders.note(followed.file), retryMs).unref();
    // Shipping stores the file's state, so that the log continues when the object writes again.
    if (wasOpen && !followed.isOpen && !this.#isClosed) this.#shipTimer ??= this.#shipLater();
    const bytes = fileBytes(followed.path);
    if (bytes === 0 || !followed.needsBase(bytes, Date.now(), msOf)) return;
    if (bytes <= smallBytes) pushBase(followed, this.#stamps, (entry) => this.#push(entry));
    else this.#copyLarge(followed);
  }

  /** Queues a large file. Large files are copied one after another. */
  #copyLarge(followed: FollowedFile): void {
    followed.isCopied = true;
    this.#large.push(followed);
    if (this.#copying !== undefined) return;
    this.#copying = this.#copyAll();
    unawaited(this.#copying);
  }

  async #copyAll(): Promise<void> {
    const { files, logger } = this.#options;
    const parts = { order: this.#order, files, stamps: this.#stamps, ship: async () => this.#ship() };
    for (;;) {
      const followed = this.#large.shift();
      if (followed === undefined) {
        this.#copying = undefined; // not later: files that are queued meanwhile would stay in the queue
        return;
      }
      if (this.#isClosed) continue; // the next start copies it
      try {
        if (!(await writeBase(followed, parts))) this.#folders.note(followed.file);
        this.#tidy();
      } catch (error) {
        logger.error({ err: error }, "a database of an object could not be copied to the log of objects");
        await new Promise((resolve) => setTimeout(resolve, retryMs).unref());
        this.#folders.note(followed.file);
      }
    }
  }

  #push(entry: Entry): void {
    const shipper = this.#shipper;
    if (entry.kind === "frames")
      this.#folders.noteFrames(entry.namespace, Math.ceil(entry.bytes.length / entry.pageBytes!));
    if (entry.kind === "gap") this.#followed.noteLate(this.#followed.get(entry));
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
    this.#copy(this.#followed.late().filter(({ isBehind }) => !isBehind));
  }

  /** Copies files without a base until as much waits as is shipped at once. The others follow after that is shipped. */
  #copy(late: readonly FollowedFile[]): void {
    for (const each of late) {
      if (this.#isClosed || this.#shipper.waitingBytes > shipBytes) return;
      this.#readOne(each);
    }
  }

  /** Drops the waiting frames, because the store could not be reached for too long. */
  #giveUp(): void {
    for (const file of this.#shipper.drop()) this.#followed.get(file)?.noteGap();
  }

  /** Stops following files that are no longer written, and stores their states. */
  #tidy(): void {
    if (!this.#shipper.isIdle) return;
    this.#lastEntries.clear();
    const ended = this.#followed.all().filter((each) => !each.isOpen && !each.isCopied && each.hasBase);
    for (const each of ended) this.#followed.delete(each);
    if (ended.length > 0)
      this.#options.catalog.putStates(ended.map(({ file, state }) => ({ ...file, state })));
  }

  #drop(file: ObjectFile): void {
    const followed = this.#followed.get(file);
    if (followed === undefined) return;
    followed.epoch += 1;
    followed.close();
    this.#followed.delete(followed);
  }

  #statesOf(all: readonly ObjectFile[]): (ObjectFile & { state: FileState })[] {
    return all.flatMap((file) => {
      const followed = this.#followed.get(file);
      return followed === undefined ? [] : [{ ...file, state: followed.state }];
    });
  }
}
