import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { CallerId } from "../../control/access/actor.ts";
import { newId } from "../../platform/util/ids.ts";
import { unawaited } from "../../platform/util/uncaught.ts";
import type { TailEvent } from "./event.ts";
import { wantsEvent, wantsRun, type Filter } from "./filter.ts";
import { tailErrors, tailsOfScopeMax } from "./errors.ts";
import { clock } from "../../platform/timers/clock.ts";

/** The scope of a tail: one script, or everything that an account and its customers run. */
export interface TailScope {
  accountId: string;
  scriptId: string | undefined;
}

export interface TailRecord extends TailScope {
  id: string;
  filters: readonly Filter[];
  expiresOn: number;
  secretHash: Buffer;
  /** The caller that created the tail. The tail ends when this caller may no longer watch. */
  creator: CallerId;
}

export interface Tail extends TailRecord {
  /** Set once a watcher has connected. */
  watcher: Watcher | undefined;
  /** Whether another node has the watcher, or expects it. */
  isForeign: boolean;
}

/** Connections to other nodes; absent on a single node. */
export interface TailLinks {
  made(tail: TailRecord): Promise<void>;
  /** Calls `take` once all nodes can know that the watcher is here. Not if the tail has ended meanwhile. */
  connected(tail: TailRecord, take: () => void): Promise<void>;
  /** `isForAll`: also if another node has the tail. */
  ended(tail: TailRecord, isForAll: boolean): Promise<void>;
  /** Reads a tail that another node may have created. */
  seek(id: string): Promise<void>;
}

export interface Watcher {
  send(event: TailEvent): void;
  /** Called when the tail has ended. */
  end(): void;
}

/** A watched run, and the tails that may want it. */
export interface Watched {
  deliver(event: TailEvent): void;
}

/** A consumer of accounts' runs besides tails, such as Logpush. */
export interface RunConsumer {
  wants(accountId: string): boolean;
  consume(accountId: string, event: TailEvent): void;
}

/** Required of the creator of a tail for as long as the tail is open. */
export const tailPermission = "workers_tail:read";
const lifetimeMs = 6 * 60 * 60 * 1000;
/** Time for the client to connect after it has created a tail. */
const connectMs = 60_000;

/** The tails of all scripts, in memory. A run of an unwatched script costs one lookup in an empty map. */
export class Tails {
  readonly #byScope = new Map<string, Set<Tail>>();
  readonly #byId = new Map<string, Tail>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  /** Increases with each new tail. */
  revision = 0;
  #links: TailLinks | undefined;
  #consumer: RunConsumer | undefined;
  readonly #isAllowed: (tail: TailRecord) => Promise<boolean>;
  /** Called when tails are added or removed. */
  #changed: () => Promise<void> = async () => {};

  /** `isAllowed` says whether the creator of a tail may still watch its scope. */
  constructor(isAllowed: (tail: TailRecord) => Promise<boolean>) {
    this.#isAllowed = isAllowed;
  }

  link(links: TailLinks): void {
    this.#links = links;
  }

  /** Sets the consumer of runs, which replaces the previous one. */
  setConsumer(consumer: RunConsumer | undefined): void {
    this.#consumer = consumer;
    this.revision++;
  }

  /** Sets the listener for changes of the list of tails. `create` waits for the listener. */
  onChange(changed: () => Promise<void>): void {
    this.#changed = changed;
  }

  /** Sends an event of another process's run to a tail's watcher. */
  deliver(id: string, event: TailEvent): void {
    this.#byId.get(id)?.watcher?.send(event);
  }

  /** The secret is returned only here. */
  async create(
    scope: TailScope,
    creator: CallerId,
    filters: readonly Filter[],
  ): Promise<{ tail: Tail; secret: string }> {
    if (this.list(scope).length >= tailsOfScopeMax) throw tailErrors.tooMany();
    const secret = randomBytes(24).toString("base64url");
    const tail: Tail = {
      ...scope,
      id: newId(),
      filters,
      expiresOn: clock.now() + lifetimeMs,
      secretHash: hash(secret),
      creator,
      watcher: undefined,
      isForeign: false,
    };
    await this.#links?.made(tail);
    this.#add(tail);
    this.#endAfter(tail, connectMs);
    await this.#changed();
    return { tail, secret };
  }

  /** Adds a tail of another node. */
  adopt(known: TailRecord, watcher: Watcher | undefined): void {
    const tail = this.#byId.get(known.id);
    if (tail === undefined) {
      this.#add({ ...known, watcher, isForeign: true });
      unawaited(this.#changed());
    } else {
      // The watcher is now on another node.
      if (!tail.isForeign) tail.watcher?.end();
      Object.assign(tail, { watcher, isForeign: true });
      clearTimeout(this.#timers.get(tail.id));
    }
  }

  #add(tail: Tail): void {
    const siblings = this.#byScope.get(keyOf(tail)) ?? new Set();
    this.#byScope.set(keyOf(tail), siblings.add(tail));
    this.#byId.set(tail.id, tail);
    this.revision++;
  }

  all(): Iterable<Tail> {
    return this.#byId.values();
  }

  list(scope: TailScope): Tail[] {
    return [...(this.#byScope.get(keyOf(scope)) ?? [])];
  }

  async delete(scope: TailScope, id: string): Promise<void> {
    const tail = this.#byId.get(id);
    if (tail === undefined || keyOf(tail) !== keyOf(scope)) throw tailErrors.notFound(id);
    this.drop(id);
    await this.#links?.ended(tail, true);
  }

  /** The tail for an id and its secret, unless its creator may no longer watch. */
  async find(id: string, secret: string): Promise<Tail | undefined> {
    if (!this.#byId.has(id)) await this.#links?.seek(id);
    const tail = this.#byId.get(id);
    if (tail === undefined || !timingSafeEqual(tail.secretHash, hash(secret))) return undefined;
    return (await this.#isAllowed(tail)) ? tail : undefined;
  }

  /** Ends the tails on this node whose creators may no longer watch. */
  async endForbidden(): Promise<void> {
    for (const tail of [...this.#byId.values()])
      if (!tail.isForeign && !(await this.#isAllowed(tail))) await this.end(tail);
  }

  /** Opens a tail's watcher once this node has the tail. Returns false if the tail has ended meanwhile. */
  async connect(tail: Tail, open: () => Watcher): Promise<boolean> {
    let isOpen = false;
    const take = (): void => {
      if (this.#byId.get(tail.id) !== tail) return;
      tail.watcher?.end();
      Object.assign(tail, { watcher: open(), isForeign: false });
      this.#endAfter(tail, tail.expiresOn - clock.now());
      isOpen = true;
    };
    if (this.#links === undefined) take();
    else await this.#links.connected(tail, take);
    return isOpen;
  }

  /** Ends a tail whose watcher has left or never connected. */
  async end(tail: Tail): Promise<void> {
    this.drop(tail.id);
    await this.#links?.ended(tail, false);
  }

  /** Ends the tails of a deleted script or account. */
  endScope(scopeId: string): void {
    // If the database is unreachable, the tails expire.
    for (const tail of [...(this.#byScope.get(scopeId) ?? [])]) this.end(tail).catch(() => {});
  }

  /** Removes a tail without notifying other nodes. */
  drop(id: string): void {
    const tail = this.#byId.get(id);
    if (tail === undefined) return;
    this.#byId.delete(id);
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
    const siblings = this.#byScope.get(keyOf(tail));
    siblings?.delete(tail);
    if (siblings?.size === 0) this.#byScope.delete(keyOf(tail));
    tail.watcher?.end();
    unawaited(this.#changed());
  }

  /** Ends all tails when the process stops. */
  async endAll(): Promise<void> {
    const own = [...this.#byId.values()].filter(({ isForeign }) => !isForeign);
    await Promise.all(own.map(async (tail) => this.end(tail)));
  }

  isWatched({ accountId, scriptId }: { accountId: string; scriptId: string }): boolean {
    const isTailed = this.#byScope.size > 0 && (this.#byScope.has(scriptId) || this.#byScope.has(accountId));
    return isTailed || this.#consumer?.wants(accountId) === true;
  }

  /** The watchers and the reader of a run; undefined if no tail can match the run and no reader wants it. */
  watch(
    { accountId, scriptId }: { accountId: string; scriptId: string },
    run: Pick<TailEvent, "event" | "scriptVersion">,
  ): Watched | undefined {
    const wanted = [...(this.#byScope.get(scriptId) ?? []), ...(this.#byScope.get(accountId) ?? [])].filter(
      ({ filters, watcher }) => watcher !== undefined && wantsRun(filters, run),
    );
    const consumer = this.#consumer?.wants(accountId) === true ? this.#consumer : undefined;
    if (wanted.length === 0 && consumer === undefined) return undefined;
    return {
      deliver(event) {
        for (const { filters, watcher } of wanted) if (wantsEvent(filters, event)) watcher?.send(event);
        consumer?.consume(accountId, event);
      },
    };
  }

  #endAfter(tail: Tail, delayMs: number): void {
    clearTimeout(this.#timers.get(tail.id));
    // If the database is unreachable, other nodes notice the missing signs of life.
    const end = (): void => {
      this.end(tail).catch(() => {});
    };
    this.#timers.set(tail.id, setTimeout(end, delayMs).unref());
  }
}

/** Ids of scripts and accounts are both random, so they never collide. */
const keyOf = ({ accountId, scriptId }: TailScope): string => scriptId ?? accountId;

const hash = (secret: string): Buffer => createHash("sha256").update(secret).digest();
