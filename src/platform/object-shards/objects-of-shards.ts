import type { Logger } from "pino";
import type { OpenObjectLog } from "../object-log/open-object-log.ts";
import type { KnownShards } from "./known-shards.ts";
import type { ShardHolder, TakenShard } from "./lease.ts";
import { restoreObject, ShardGiven } from "./restore-object.ts";
import { shardOf } from "./shard.ts";
import { LRUCache } from "lru-cache";
import { unawaited } from "../util/uncaught.ts";
import { entriesMax } from "../util/loading-cache.ts";

type InShards = (namespace: string) => boolean;
interface ObjectOfLog {
  namespace: string;
  id: string;
}

/** The processes of objects of this node, and what it knows of objects. */
export interface ObjectsHere {
  /** Kills the processes that have namespaces. Resolves when they are gone. */
  end(isIn: InShards): Promise<void>;
  /** The namespaces that a process has. */
  running(): Iterable<string>;
  /** The namespaces with files here. */
  folders(): Promise<string[]>;
  /** Those of the given namespaces that exist. */
  existing(namespaces: readonly string[]): Promise<ReadonlySet<string>>;
  /** Creates the folder of a namespace, after an earlier one is removed. */
  createFolder(namespace: string): Promise<void>;
  removeFolder(namespace: string): Promise<void>;
  /** Reads what the database knows of the objects of namespaces, such as their alarms. */
  load(isIn: InShards): Promise<void>;
  /** Stores what the database does not know yet. */
  store(): Promise<void>;
  /** Forgets what belongs to namespaces. */
  forget(isIn: InShards): void;
}

/** Runs the objects of this node's shards: brings their files here, and takes them away. */
export class ObjectsOfShards implements ShardHolder {
  readonly #log: OpenObjectLog;
  readonly #here: ObjectsHere;
  readonly #files: KnownShards;
  readonly #logger: Logger;
  /** The shards whose log this node writes, each with a value for the time in which it does. */
  readonly #own = new Map<number, symbol>();
  /** Raised when all shards are given up, so that work for them ends without an effect. */
  #generation = 0;
  /** Objects whose files are here, or are being written. */
  readonly #restored = new LRUCache<string, Promise<void>>(entriesMax(100_000));
  /** Objects whose files are being written, also for an earlier time of their shards: two would write the same files. */
  readonly #restoring = new Map<string, Promise<void>>();

  constructor(log: OpenObjectLog, here: ObjectsHere, files: KnownShards, logger: Logger) {
    this.#log = log;
    this.#here = here;
    this.#files = files;
    this.#logger = logger;
  }

  /** Whether this node writes the log of a namespace. */
  isOwn(namespace: string): boolean {
    return this.#own.has(shardOf(namespace));
  }

  known(): number[] {
    return this.#files.all;
  }

  inUse(): Set<number> {
    return new Set([...this.#here.running()].map(shardOf));
  }

  async prepare(): Promise<void> {
    await this.#log.ready();
  }

  async adopt(taken: readonly TakenShard[], id: number): Promise<void> {
    const generation = this.#generation;
    await this.#log.sync();
    const isIn = within(taken.map(({ shard }) => shard));
    const old = within(taken.filter((each) => !this.#files.isNewest(each)).map(({ shard }) => shard));
    for (const namespace of await this.#namespacesHere(old)) {
      await this.#here.removeFolder(namespace);
      this.#log.catalog.removeNotes(namespace);
    }
    await this.#files.note(taken, id);
    if (generation !== this.#generation) throw new Error("The lease on shards was lost meanwhile");
    for (const { shard } of taken) this.#own.set(shard, Symbol());
    await this.#log.log.catchUp(isIn);
    await this.#forgetDeleted(isIn);
    await this.#here.load(isIn);
    this.#logger.info({ shards: taken.length, lease: id }, "took over shards of objects");
  }

  /** Namespaces may have been deleted while no node wrote their log, which would keep them for ever. */
  async #forgetDeleted(isIn: InShards): Promise<void> {
    const files = this.#log.catalog.files().filter((file) => isIn(file.namespace));
    const namespaces = [...new Set(files.map(({ namespace }) => namespace))];
    const existing = await this.#here.existing(namespaces);
    for (const namespace of namespaces) {
      if (existing.has(namespace) || !this.#log.catalog.hasData(namespace)) continue;
      await this.#here.removeFolder(namespace);
      this.#log.log.forget(namespace);
    }
  }

  async leave(shards: ReadonlySet<number>): Promise<void> {
    const isIn = within([...shards]);
    await this.#here.end(isIn);
    await this.#here.store();
    this.#here.forget(isIn);
    await this.#log.log.whenShipped(await this.#namespacesHere(isIn));
    for (const shard of shards) this.#own.delete(shard);
    for (const key of [...this.#restored.keys()]) if (isIn(key)) this.#restored.delete(key);
  }

  /** The namespaces with files here, or with deletions that must be added to the log again. */
  async #namespacesHere(isIn: InShards): Promise<Set<string>> {
    const deleted = this.#log.catalog.lostDeletions().map(({ namespace }) => namespace);
    return new Set([...(await this.#here.folders()), ...deleted].filter(isIn));
  }

  async kill(): Promise<void> {
    this.#own.clear();
    this.#generation++;
    this.#here.forget(() => true);
    this.#log.log.reset();
    this.#restored.clear();
    await this.#here.end(() => true);
  }

  /** Resolves when the files of an object are here. */
  async restore(object: ObjectOfLog): Promise<void> {
    const key = `${object.namespace} ${object.id}`;
    let restored = this.#restored.get(key);
    if (restored === undefined) {
      restored = this.#restoreAfter(this.#restoring.get(key), object);
      this.#restored.set(key, restored);
      this.#restoring.set(key, restored);
      unawaited(this.#forgetFailed(key, restored));
    }
    return restored;
  }

  /** The next call tries again. */
  async #forgetFailed(key: string, restored: Promise<void>): Promise<void> {
    const hasFailed = await restored.then(
      () => false,
      () => true,
    );
    if (this.#restoring.get(key) === restored) this.#restoring.delete(key);
    if (hasFailed && this.#restored.peek(key) === restored) this.#restored.delete(key);
  }

  async #restoreAfter(before: Promise<void> | undefined, object: ObjectOfLog): Promise<void> {
    await before?.catch(() => {});
    await this.#restore(object);
  }

  async #restore(object: ObjectOfLog): Promise<void> {
    const shard = shardOf(object.namespace);
    const since = this.#own.get(shard);
    const isCurrent = (): boolean => since !== undefined && this.#own.get(shard) === since;
    try {
      await this.#here.createFolder(object.namespace);
      await restoreObject(this.#log, object, { onGap: () => this.#noteGap(object), isCurrent });
    } catch (error) {
      throw isCurrent() ? error : new ShardGiven(); // which takes the folder away, for example
    }
  }

  #noteGap(object: ObjectOfLog): void {
    this.#logger.error(object, "the log of an object lacks its last changes: it has an earlier state");
  }
}

/** Whether a namespace, or a text that begins with one, is in shards. */
function within(shards: readonly number[]): InShards {
  const all = new Set(shards);
  return (namespace) => all.has(shardOf(namespace));
}
