import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { endsWithin } from "../../util/ends-within.ts";
import { repeat } from "../../util/repeat.ts";
import { programVersion } from "../program-version.ts";
import type { Storage } from "../storage.ts";
import type { NodeIdentity } from "./node-identity.ts";
import * as store from "./node-store.ts";

/** Another process runs with the identity of this node. */
export class NodeInUse extends Error {}

/** A node as operators see it. `lost`: it was neither stopped nor seen in the last ten seconds. */
export interface ListedNode extends store.NodeRow {
  /** Of 64, the shards of Durable Objects and databases that it has; null where one process has all. */
  shards: number | null;
  state: "running" | "stopped" | "lost";
}

const beatMs = 2000;
const lookMs = 250;
/** Time limit of the last update, when the node stops. */
const endMsMax = 2000;
const beatsPerCleaning = 30;

/** Maintains the row of this node in the table of nodes, and reads the others. */
export class NodeRegistry {
  readonly id: string;
  /** A new id for each start. */
  readonly run = randomUUID();
  /** The number of live nodes, this one included, as of the last beat. */
  live = 1;
  /** The number of the last change that this node has taken over. */
  seq: () => number | undefined = () => undefined;
  readonly #storage: Storage;
  readonly #node: store.NewNode;
  readonly #logger: Logger;
  #stop: (() => Promise<void>) | undefined;
  #beats = 0;
  #isReplaced = false;

  constructor(storage: Storage, identity: NodeIdentity, blobs: string, logger: Logger) {
    this.id = identity.id;
    this.#storage = storage;
    this.#logger = logger;
    const name = hostname().slice(0, 255);
    this.#node = { ...identity, run: this.run, name, pid: process.pid, version: programVersion, blobs };
  }

  /**
   * Adds this node to the table. Throws `NodeInUse` if a process on a copy of the data folder is alive with the
   * same identity, which takes ten seconds at most to find out.
   */
  async start(): Promise<void> {
    await this.#claim();
    // A SQLite file has one owner, and the lock of its folder says whether that is alive.
    if (this.#storage.engine === "sqlite") return;
    await this.#beat();
    this.#stop = repeat(
      () => this.#beat(),
      { everyMs: beatMs },
      { logger: this.#logger, message: "the table of nodes could not be updated" },
    );
  }

  /** Rejects if another process has taken the identity while this one was suspended. */
  async check(): Promise<void> {
    if (this.#isReplaced)
      throw new NodeInUse(`The identity ${this.id} of this node is in use by another process`);
  }

  async list(): Promise<ListedNode[]> {
    const rows = await store.list(this.#storage.read, this.#storage.engine);
    return rows.map((row) => {
      if (row.run !== this.run) return { ...row, state: stateOf(row, false) };
      const seenOn = this.#storage.engine === "sqlite" ? Date.now() : row.seenOn;
      return { ...row, seenOn, state: "running" };
    });
  }

  /** Notes that this node was stopped. Without the database, others notice that it is lost. */
  async stop(): Promise<void> {
    const end = async (): Promise<void> => {
      await this.#stop?.();
      await store.end(this.#storage.read, this.#storage.engine, this.#node);
    };
    // A query on a database that hangs would last for as long as its timeout.
    await endsWithin(
      endMsMax,
      end().catch(() => {}),
    );
  }

  async #claim(): Promise<void> {
    const { read, engine } = this.#storage;
    const look = async (): ReturnType<typeof store.find> => store.find(read, engine, this.id);
    for (let before = await look(); ; before = await look()) {
      if (before !== undefined && before.isAlive && !this.#isPredecessor(before)) await this.#watch(before);
      if (await store.put(read, engine, this.#node, before?.run)) return;
    }
  }

  /** Whether a node ran in this data folder. It has ended, because this process has the folder's lock. */
  #isPredecessor({ place }: store.NodeRow): boolean {
    return this.#storage.engine === "sqlite" || place === this.#node.place;
  }

  /** Returns once a node counts as ended. Throws if it is seen again. */
  async #watch(node: store.NodeRow): Promise<void> {
    for (;;) {
      await delay(lookMs);
      const next = await store.find(this.#storage.read, this.#storage.engine, this.id);
      if (next === undefined || !next.isAlive) return;
      if (next.run !== node.run || next.seenOn > node.seenOn) throw inUse(next);
    }
  }

  async #beat(): Promise<void> {
    const { read, engine } = this.#storage;
    const live = await store.beat(read, engine, this.#node, this.seq());
    if (live === undefined) return this.#comeBack();
    this.live = live;
    if (this.#beats++ % beatsPerCleaning === 0) await store.forgetEnded(read, engine);
  }

  /** After a long suspension, the row is gone or another process's. */
  async #comeBack(): Promise<void> {
    const { read, engine } = this.#storage;
    const found = await store.find(read, engine, this.id);
    const isFree = found === undefined || found.endedOn !== null;
    if (isFree && (await store.put(read, engine, this.#node, found?.run))) this.#isReplaced = false;
    else if (!this.#isReplaced) {
      this.#isReplaced = true;
      this.#logger.error({ node: this.id, other: found?.name }, "another process runs as this node");
    }
  }
}

/** `isLocked`: the node's data folder is in use, which is surer than the time when it was last seen. */
export const stateOf = (
  { endedOn, isAlive }: store.NodeRow & { isAlive: boolean },
  isLocked: boolean,
): ListedNode["state"] => (isLocked || isAlive ? "running" : endedOn === null ? "lost" : "stopped");

const inUse = ({ id, name, pid, version, startedOn }: store.NodeRow): NodeInUse =>
  new NodeInUse(
    `The node ${id} is running already: process ${pid} on ${name}, Selvedge ${version}, started ${new Date(startedOn).toISOString()}. ` +
      "This data folder is a copy of its folder. Stop that node, or delete node.json in the copy, so that it becomes a node of its own",
  );
