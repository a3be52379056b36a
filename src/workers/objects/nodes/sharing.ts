import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "pino";
import { ConfigError } from "../../../platform/config/config.ts";
import type { Config } from "../../../platform/config/settings.ts";
import type { OpenObjectLog, SharedLog } from "../../../platform/object-log/open-object-log.ts";
import { KnownShards } from "../../../platform/object-shards/known-shards.ts";
import {
  leaseTimes,
  ShardLease,
  type LeaseClock,
  type ShardRight,
} from "../../../platform/object-shards/lease.ts";
import { StoredLeases } from "../../../platform/object-shards/lease-store.ts";
import { ObjectsOfShards, type ObjectsHere } from "../../../platform/object-shards/objects-of-shards.ts";
import { ShardGiven } from "../../../platform/object-shards/restore-object.ts";
import { knownShardsFile } from "../../../platform/storage/live-files/object-files.ts";
import type { ProcessCalls } from "../../../platform/process-calls/calls.ts";
import type { Storage } from "../../../platform/storage/storage.ts";
import { overloadedCells } from "../../../sandbox/objects/faults.ts";
import type { CellOwnership } from "../../../sandbox/objects/object-cells-options.ts";
import type { ActingObject } from "../../../sandbox/objects/standing.ts";
import { shippedWork } from "./shipped-work.ts";

const clock: LeaseClock = {
  now: () => performance.now(),
  after(ms, work) {
    const timer = setTimeout(work, ms);
    return () => clearTimeout(timer);
  },
};

interface SharingParts {
  config: Config;
  storage: Storage;
  calls: ProcessCalls;
  /** The identity of this node, and its run. */
  node: { id: string; run: string };
  folder: string;
  logger: Logger;
}

/** The part of this node in running objects, where several nodes do. */
export class ObjectSharing implements CellOwnership {
  readonly #parts: SharingParts;
  #lease: ShardLease | undefined;
  #shards: ObjectsOfShards | undefined;
  #log: OpenObjectLog | undefined;

  /** Throws ConfigError if there are objects that no log has. */
  constructor(parts: SharingParts) {
    this.#parts = parts;
    const objects = join(parts.folder, "objects");
    const hasObjects = existsSync(objects) && readdirSync(objects).length > 0;
    if (hasObjects && !existsSync(join(parts.folder, knownShardsFile)))
      throw new ConfigError(
        `Expected no objects in ${objects}: they are not in the log that nodes share, so other nodes would not see them. They are from a backup or from an installation on SQLite: restore the backup with --object-log and --backup-folder, or move them away`,
      );
  }

  /** Why no object may run on an installation; undefined if they may. */
  static refusalOf(
    storage: Storage,
    { objectLog }: Config,
    calls: ProcessCalls | undefined,
  ): string | undefined {
    const isShared = storage.engine === "postgres";
    return isShared && (objectLog === undefined || calls === undefined) ? withoutOwner : undefined;
  }

  /** For the log that all nodes write. */
  get log(): SharedLog {
    const isOwn = (namespace: string): boolean => this.#shards?.isOwn(namespace) === true;
    const leaseNow = (): number | undefined => this.lease;
    return {
      storage: this.#parts.storage,
      lease: {
        get current() {
          return leaseNow();
        },
        isOwn,
      },
    };
  }

  /** Prepares to take shards. */
  begin(log: OpenObjectLog, here: ObjectsHere): void {
    const { storage, node, calls, folder, logger } = this.#parts;
    const known = new KnownShards(join(folder, knownShardsFile));
    const shards = new ObjectsOfShards(log, here, known, logger);
    this.#shards = shards;
    this.#log = log;
    const times = leaseTimes(this.leaseMs);
    const store = new StoredLeases(storage.read, node, calls.path);
    const failed = (error: unknown): void =>
      logger.warn({ err: error }, "the lease on shards of objects could not be renewed or used");
    this.#lease = new ShardLease(store, shards, clock, failed, times);
  }

  /** The leases of all nodes. */
  get owners(): ShardLease {
    if (this.#lease === undefined) throw new Error("Expected `begin` first");
    return this.#lease;
  }

  /** The time of a lease. */
  get leaseMs(): number {
    return this.#parts.config.objectLeaseSeconds * 1000;
  }

  get lease(): number | undefined {
    return this.#lease?.current;
  }

  owns(namespace: string): boolean {
    return this.#lease?.owns(namespace) === true;
  }

  readonly rightTo = (namespace: string): ShardRight | undefined => this.#lease?.rightTo(namespace);

  async restore(object: ActingObject): Promise<void> {
    if (!this.owns(object.namespace)) throw overloadedCells();
    try {
      await this.#shards!.restore(object);
    } catch (error) {
      throw error instanceof ShardGiven ? overloadedCells() : error;
    }
  }

  async restorePage(
    namespace: string,
    { limit, cursor = "" }: { limit: number; cursor?: string | undefined },
  ): Promise<string | undefined> {
    const names = this.#log!.catalog.files(namespace).map(({ name }) => name.slice(0, name.indexOf(".")));
    const ids = [...new Set(names)].filter((id) => id > cursor).sort();
    const page = ids.slice(0, limit);
    for (const id of page) await this.restore({ namespace, id });
    if (!this.owns(namespace)) throw overloadedCells(); // the catalog may lack its last objects
    return ids.length > page.length ? page.at(-1) : undefined;
  }

  async shipped<T>(namespace: string, work: () => Promise<T>): Promise<T> {
    const { logger } = this.#parts;
    return shippedWork(namespace, work, { lease: this.owners, log: this.#log!.log, logger });
  }

  start(): { giveBack: () => Promise<void>; stop: () => Promise<void> } {
    const { owners } = this;
    owners.start();
    return { giveBack: async () => owners.giveBack(), stop: async () => owners.stop() };
  }
}

/** Says "objects" because the client of D1 replaces the words "Durable Object" in messages. */
const withoutOwner =
  "Objects and D1 databases do not run on this installation: its configuration is in PostgreSQL, which several nodes may share, and each of them needs a single owner.";
