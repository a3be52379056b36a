import type { Logger } from "pino";
import type { OpenObjectLog } from "../object-log/open-object-log.ts";
import type { KnownShards } from "./known-shards.ts";
import type { ShardHolder, TakenShard } from "./lease.ts";
import { restoreObject } from "./restore-object.ts";
import { shardOf } from "./shard.ts";
import { LRUCache } from "lru-cache";
import { unawaited } from "../util/uncaught.ts";
import { entriesMax } from "../util/loading-cache.ts";

type InShards = (namespace: string) => boolean;

/** The processes of objects of this node, and what it knows of objects. */
export interface ObjectsHere {
  /** Kills the processes that have namespaces. Resolves when they are gone. */
  end(isIn: InShards): Promise<void>;
  /** The namespaces that a process has. */
  running(): Iterable<string>;
  /** The namespaces with files here. */
  folders(): Promise<string[]>;
  createFolder(namespace: string): void;
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
  /** The shards whose log this node writes. */
  readonly #own = new Set<number>();
  /** Raised when shards are given up, so that work for them ends without an effect. */
  #generation = 0;
  /** Objects whose files are here, or are being written. */
  readonly #restored = new LRUCache<string, Promise<void>>(entriesMax(100_000));

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
    for (const namespace of (await this.#here.folders()).filter(old)) {
      await this.#here.removeFolder(namespace);
      this.#log.catalog.removeStates(namespace);
    }
    await this.#files.note(taken, id);
    if (generation !== this.#generation) throw new Error("The lease on shards was lost meanwhile");
    for (const { shard } of taken) this.#own.add(shard);
    await this.#log.log.catchUp(isIn);
    await this.#here.load(isIn);
    this.#logger.info({ shards: taken.length, lease: id }, "took over shards of objects");
  }

  async leave(shards: ReadonlySet<number>): Promise<void> {
    const isIn = within([...shards]);
    await this.#here.end(isIn);
    await this.#here.store();
    this.#here.forget(isIn);
    const namespaces = (await this.#here.folders()).filter(isIn);
    await this.#log.log.whenShipped(new Set(namespaces));
    for (const shard of shards) this.#own.delete(shard);
    this.#generation++;
    for (const key of [...this.#restored.keys()]) if (isIn(key)) this.#restored.delete(key);
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
  async restore(object: { namespace: string; id: string }): Promise<void> {
    const key = `${object.namespace} ${object.id}`;
    let restored = this.#restored.get(key);
    if (restored === undefined) {
      restored = this.#restore(object);
      this.#restored.set(key, restored);
      unawaited(restored.catch(() => this.#restored.delete(key)));
    }
    return restored;
  }

  async #restore(object: { namespace: string; id: string }): Promise<void> {
    const generation = this.#generation;
    this.#here.createFolder(object.namespace);
    await restoreObject(this.#log, object, {
      onGap: () =>
        this.#logger.error(object, "the log of an object lacks its last changes: it has an earlier state"),
      isCurrent: () => generation === this.#generation,
    });
  }
}

/** Whether a namespace, or a text that begins with one, is in shards. */
function within(shards: readonly number[]): InShards {
  const all = new Set(shards);
  return (namespace) => all.has(shardOf(namespace));
}
