import type { Logger } from "pino";
import { reloadByForgetting } from "../../platform/storage/changes/listeners.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { newId } from "../../platform/util/ids.ts";
import { Turns } from "../../platform/util/turns.ts";
import { bounded } from "./bounded.ts";
import type { TailEvent } from "./event.ts";
import * as store from "./store.ts";
import type { TailRecord, Tails, Watcher } from "./tails.ts";
import { unawaited } from "../../platform/util/uncaught.ts";

const tickMs = 250;
const heartbeatMs = 15_000;
/** A node is considered gone after this time without a sign of life, together with its watchers. */
const silenceMs = 60_000;
/** Characters of events waiting to be written; further events are dropped. */
const waitingLengthMax = 4 * 1024 * 1024;
const atOnceMax = 100;

/**
 * Tails over several nodes with one database: a table has the scripts that are watched, and carries
 * their events to the node of the watcher.
 */
export class TailRelay {
  readonly #storage: Storage;
  readonly #tails: Tails;
  readonly #logger: Logger;
  readonly #node = newId();
  readonly #waiting: { tailId: string; event: string }[] = [];
  #waitingLength = 0;
  /** Each read of the table and its use are one turn, so that no older read undoes what a newer one has found. */
  readonly #reading = new Turns();
  #timer: NodeJS.Timeout | undefined;
  #isBusy = false;
  #heartbeatOn = 0;

  constructor(storage: Storage, tails: Tails, logger: Logger) {
    this.#storage = storage;
    this.#tails = tails;
    this.#logger = logger;
    storage.onChange(
      async (changes) => {
        if (changes.some(({ kind }) => kind === "tail")) await this.#load();
      },
      reloadByForgetting(() => this.#load()),
    );
    tails.link({
      made: async (tail) => this.#write(tail, async (trx) => store.insert(trx, tail, this.#node, Date.now())),
      connected: async (tail, take) => {
        await this.#write(tail, async (trx) => store.claim(trx, tail.id, this.#node, Date.now()));
        await this.#reading.take(async () => {
          const claimed = await store.find(this.#storage.read, tail.id);
          if (claimed?.holder === this.#node) take();
        });
      },
      ended: async (tail, isForAll) =>
        this.#write(tail, async (trx) => store.remove(trx, [tail.id], isForAll ? undefined : this.#node)),
      seek: async (id) =>
        this.#reading.take(async () => {
          const tail = await store.find(this.#storage.read, id);
          if (tail !== undefined && tail.seenOn > Date.now() - silenceMs) this.#adopt(tail);
        }),
    });
  }

  async start(): Promise<void> {
    await this.#load();
    this.#timer = setInterval(() => {
      unawaited(this.#tick());
    }, tickMs);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #write(tail: TailRecord, work: Parameters<Storage["write"]>[0]): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await work(trx, changed);
      changed({ kind: "tail", id: tail.id, parentId: tail.accountId });
    });
  }

  async #load(): Promise<void> {
    await this.#reading.take(async () => this.#read());
  }

  async #read(): Promise<void> {
    const tails = await store.loadAll(this.#storage.read);
    const silentSince = Date.now() - silenceMs;
    const [present, silent] = [new Set<string>(), [] as string[]];
    for (const tail of tails) {
      if (tail.seenOn < silentSince || tail.expiresOn < Date.now()) silent.push(tail.id);
      else {
        present.add(tail.id);
        this.#adopt(tail);
      }
    }
    for (const { id } of this.#tails.all()) if (!present.has(id)) this.#tails.drop(id);
    await this.#storage.write(async (trx) => store.remove(trx, silent));
  }

  /** Adopts a tail of another node: this node's runs are sent to it. */
  #adopt(tail: store.SharedTail): void {
    if (tail.holder !== this.#node)
      this.#tails.adopt(tail, tail.isConnected ? this.#writer(tail) : undefined);
  }

  #writer({ id }: TailRecord): Watcher {
    const send = bounded(
      () => this.#waitingLength < waitingLengthMax,
      (event) => {
        this.#waiting.push({ tailId: id, event });
        this.#waitingLength += event.length;
      },
    );
    return { send, end() {} };
  }

  async #tick(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      const all = [...this.#tails.all()];
      if (all.length > 0 && this.#heartbeatOn < Date.now() - heartbeatMs) {
        this.#heartbeatOn = Date.now();
        await this.#storage.write(async (trx) => store.touch(trx, this.#node, Date.now()));
        await this.#load();
      }
      const leaving = this.#waiting.splice(0, atOnceMax);
      for (const { event } of leaving) this.#waitingLength -= event.length;
      if (leaving.length > 0) await this.#storage.write(async (trx) => store.addEvents(trx, leaving));
      await this.#receive(all.filter(({ watcher, isForeign }) => watcher !== undefined && !isForeign));
    } catch (error) {
      this.#logger.warn({ err: error }, "live logs could not be exchanged with other nodes");
    } finally {
      this.#isBusy = false;
    }
  }

  async #receive(held: readonly { id: string; watcher: Watcher | undefined }[]): Promise<void> {
    if (held.length === 0) return;
    const ids = held.map(({ id }) => id);
    const events = await this.#storage.write(async (trx) => store.takeEvents(trx, ids, atOnceMax));
    for (const { tailId, event } of events)
      held.find(({ id }) => id === tailId)?.watcher?.send(JSON.parse(event) as TailEvent);
  }
}
