import { lstatSync, readdirSync, watch, type FSWatcher } from "node:fs";
import { join } from "node:path";
import { fileBytes, isDatabase, isFacets, type ObjectFile } from "../storage/live-files/object-files.ts";
import type { FollowedFiles } from "./followed-files.ts";

const logSuffix = "-wal";
/** A namespace is busy from so many reports between two decisions, and one more for every two open files. */
const busyReports = 6;
const filesForReport = 2;
/** It is calm again when fewer than this share of that many frames are new. */
const calmShare = 1 / 4;
const decideMs = 8;
/** Of a namespace with more files, the kernel reports each write, because its folder takes too long to list. */
const listedMax = 1000;
const listAgainMs = 10_000;
/** Two changes of a folder may have the same time of modification if no more than this is between them. */
const sameTimeMs = 50;

interface Listed {
  names: ReadonlySet<string>;
  /** The folder's time of modification before it was listed, and when it was, by the same clock. */
  modifiedMs: number;
  atMs: number;
}

interface WatchedFolder {
  namespace: string;
  path: string;
  /** Undefined while the namespace is busy. */
  watcher: FSWatcher | undefined;
  /** Since the last decision: reports of the kernel, or new frames while the namespace is busy. */
  changes: number;
  /** Monotonic time. */
  decidedMs: number;
  listed: Listed | undefined;
  /** The sizes of indexes of facets, while the namespace is busy. */
  facetBytes: Map<string, number>;
}

/**
 * Finds the files of namespaces that may have changed. The kernel reports each write to a folder that is watched: that
 * costs nothing while its objects are idle, but as much as half a commit when they write all the time. So a busy namespace
 * is not watched. Instead, all its open files count as changed at each look, until few of them are.
 */
export class WatchedFolders {
  readonly #folder: string;
  readonly #followed: FollowedFiles;
  readonly #onChange: () => void;
  readonly #folders = new Map<string, WatchedFolder>();
  readonly #reported = new Set<WatchedFolder>();
  readonly #busy = new Set<WatchedFolder>();
  readonly #changed = new Map<string, ObjectFile>();

  /** `onChange` is called when `look` will return something. */
  constructor(folder: string, followed: FollowedFiles, onChange: () => void) {
    this.#folder = folder;
    this.#followed = followed;
    this.#onChange = onChange;
  }

  get namespaces(): string[] {
    return [...this.#folders.keys()];
  }

  /** Whether `look` must be called again without a report. */
  get isBusy(): boolean {
    return this.#busy.size > 0;
  }

  has(namespace: string): boolean {
    return this.#folders.has(namespace);
  }

  add(namespace: string): void {
    if (this.has(namespace)) return;
    const folder: WatchedFolder = {
      namespace,
      path: join(this.#folder, namespace),
      watcher: undefined,
      changes: 0,
      decidedMs: 0,
      listed: undefined,
      facetBytes: new Map(),
    };
    this.#watch(folder);
    this.#folders.set(namespace, folder);
  }

  delete(namespace: string): void {
    const folder = this.#folders.get(namespace);
    if (folder === undefined) return;
    folder.watcher?.close();
    this.#folders.delete(namespace);
    this.#reported.delete(folder);
    this.#busy.delete(folder);
  }

  /** Forgets all namespaces, and what has changed. */
  clear(): void {
    for (const namespace of this.namespaces) this.delete(namespace);
    this.#changed.clear();
  }

  note(file: ObjectFile): void {
    this.#add(file);
    this.#onChange();
  }

  noteFrames(namespace: string, count: number): void {
    const folder = this.#folders.get(namespace);
    if (folder?.watcher === undefined && folder !== undefined) folder.changes += count;
  }

  /** The files that may have changed since the last call. */
  look(): ObjectFile[] {
    const now = performance.now();
    for (const folder of this.#busy) this.#lookAt(folder, now);
    for (const folder of this.#reported) if (now - folder.decidedMs >= decideMs) this.#decide(folder, now);
    const changed = [...this.#changed.values()];
    this.#changed.clear();
    return changed;
  }

  #add(file: ObjectFile): void {
    this.#changed.set(`${file.namespace}/${file.name}`, file);
  }

  #watch(folder: WatchedFolder): void {
    const { namespace } = folder;
    const watcher = watch(folder.path, (event, changed) => {
      folder.changes++;
      this.#reported.add(folder);
      const name = changed === null ? "" : databaseOf(changed);
      if (!isDatabase(name) && !isFacets(name)) return;
      // The database itself matters only when it is deleted.
      if (name !== changed || isFacets(name) || event === "rename") this.note({ namespace, name });
    });
    watcher.on("error", () => {
      if (folder.watcher === watcher) this.delete(namespace); // the folder was removed
    });
    watcher.unref();
    folder.watcher = watcher;
  }

  /** Whether reading all open files at each look costs less than reports of so many changes. */
  #isMany(changes: number, { namespace }: WatchedFolder): boolean {
    return (
      changes >= busyReports &&
      changes >= busyReports + this.#followed.openOf(namespace).length / filesForReport
    );
  }

  /**
   * Makes a namespace busy in two decisions: between them the reports of what was before the list arrive, so that the next
   * list shows what was deleted.
   */
  #decide(folder: WatchedFolder, now: number): void {
    const isMany = this.#isMany(folder.changes, folder);
    folder.changes = 0;
    folder.decidedMs = now;
    this.#reported.delete(folder);
    const { listed } = folder;
    if (!isMany) {
      if (listed !== undefined && listed.names.size <= listedMax) folder.listed = undefined;
    } else if (
      listed === undefined ||
      (listed.names.size > listedMax && Date.now() - listed.atMs > listAgainMs)
    )
      folder.listed = listOf(folder.path);
    else if (listed.names.size <= listedMax) {
      folder.watcher!.close();
      folder.watcher = undefined;
      folder.facetBytes.clear();
      this.#busy.add(folder);
      this.#compare(folder);
      this.#addOpen(folder);
    }
  }

  #lookAt(folder: WatchedFolder, now: number): void {
    const isDue = now - folder.decidedMs >= decideMs;
    const isCalm = isDue && !this.#isMany(folder.changes / calmShare, folder);
    if (isDue) [folder.changes, folder.decidedMs] = [0, now];
    try {
      const { modifiedMs, atMs, names } = folder.listed!;
      const isEnd = isCalm || names.size > listedMax;
      // From now on the kernel reports again. Earlier changes are found below.
      if (isEnd) this.#watch(folder);
      if (isEnd || atMs - modifiedMs <= sameTimeMs || lstatSync(folder.path).mtimeMs !== modifiedMs)
        this.#compare(folder);
      this.#addOpen(folder);
      if (!isEnd) return;
      this.#busy.delete(folder);
      if (isCalm) folder.listed = undefined;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      this.delete(folder.namespace); // the folder was removed
    }
  }

  /** Open files count as changed. Of their objects, the indexes of facets do when they have grown. */
  #addOpen({ namespace, facetBytes, path }: WatchedFolder): void {
    for (const { file } of this.#followed.openOf(namespace)) {
      this.#add(file);
      const name = `${file.name.slice(0, file.name.indexOf("."))}.facets`;
      const bytes = fileBytes(join(path, name));
      if (bytes === (facetBytes.get(name) ?? 0)) continue;
      facetBytes.set(name, bytes);
      this.#add({ namespace, name });
    }
  }

  /** Lists the folder again. Files that came or went since the last list count as changed, and logs that are not open. */
  #compare(folder: WatchedFolder): void {
    const { namespace, path, listed } = folder;
    const { names } = (folder.listed = listOf(path));
    const isNew = (each: string): boolean =>
      listed?.names.has(each) !== true ||
      (each.endsWith(logSuffix) &&
        this.#followed.get({ namespace, name: databaseOf(each) })?.isOpen !== true);
    const found = [...names].filter(isNew);
    const gone = [...(listed?.names ?? [])].filter((each) => !names.has(each));
    for (const each of [...found, ...gone]) {
      const name = databaseOf(each);
      if (isDatabase(name) || isFacets(name)) this.#add({ namespace, name });
    }
  }
}

const databaseOf = (name: string): string =>
  name.endsWith(logSuffix) ? name.slice(0, -logSuffix.length) : name;

function listOf(path: string): Listed {
  const { mtimeMs } = lstatSync(path);
  return { modifiedMs: mtimeMs, atMs: Date.now(), names: new Set(readdirSync(path)) };
}
