import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { ApiError } from "../api/errors.ts";
import { newId } from "../util/ids.ts";
import type { TailEvent } from "./event.ts";
import { wantsEvent, wantsRun, type Filter } from "./filter.ts";

/** What is watched: one script, or all that an account and its customers run. */
export interface TailScope {
  accountId: string;
  scriptId: string | undefined;
}

export interface KnownTail extends TailScope {
  id: string;
  filters: readonly Filter[];
  expiresOn: number;
  secretHash: Buffer;
}

export interface Tail extends KnownTail {
  /** Where events go, once somebody has connected. */
  watcher: Watcher | undefined;
  /** Whether it is another node where somebody connected, or was expected. */
  isForeign: boolean;
}

/** What other nodes are told, where there are any. */
export interface TailLinks {
  made(tail: KnownTail): Promise<void>;
  connected(tail: KnownTail): Promise<void>;
  /** `isForAll`: also where it is another node that has it. */
  ended(tail: KnownTail, isForAll: boolean): Promise<void>;
  /** Reads a tail that another node may have made. */
  seek(id: string): Promise<void>;
}

export interface Watcher {
  tell(event: TailEvent): void;
  /** The tail is no more. */
  end(): void;
}

/** A run that is looked at: by those who may want it, when it is over. */
export interface Watched {
  tell(event: TailEvent): void;
}

const lifetimeMs = 6 * 60 * 60 * 1000;
/** Time in which whoever made a tail has to connect. */
const connectMs = 60_000;
const tailsOfScopeMax = 10;

export const tailErrors = {
  notFound: (id: string) => new ApiError(404, 10110, `There is no tail with the id ${id}`),
  tooMany: () =>
    new ApiError(
      429,
      10111,
      `Expected at most ${tailsOfScopeMax} tails of a script, or of an account, at once`,
    ),
};

/** Who watches which script. All of it is in memory, and a run that nobody watches costs one look into an empty map. */
export class Tails {
  readonly #byScope = new Map<string, Set<Tail>>();
  readonly #byId = new Map<string, Tail>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  /** Grows with each tail that is made. */
  revision = 0;
  #links: TailLinks | undefined;

  link(links: TailLinks): void {
    this.#links = links;
  }

  /** `secret` is known only to whoever gets this answer. */
  async create(scope: TailScope, filters: readonly Filter[]): Promise<{ tail: Tail; secret: string }> {
    if (this.list(scope).length >= tailsOfScopeMax) throw tailErrors.tooMany();
    const secret = randomBytes(24).toString("base64url");
    const tail: Tail = {
      ...scope,
      id: newId(),
      filters,
      expiresOn: Date.now() + lifetimeMs,
      secretHash: hash(secret),
      watcher: undefined,
      isForeign: false,
    };
    await this.#links?.made(tail);
    this.#add(tail);
    this.#endAfter(tail, connectMs);
    return { tail, secret };
  }

  /** A tail that another node has. */
  adopt(known: KnownTail, watcher: Watcher | undefined): void {
    const tail = this.#byId.get(known.id);
    if (tail === undefined) this.#add({ ...known, watcher, isForeign: true });
    else {
      // Whoever waited for a watcher here waits no more.
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

  /** The tail that somebody who connects may watch. */
  async find(id: string, secret: string): Promise<Tail | undefined> {
    if (!this.#byId.has(id)) await this.#links?.seek(id);
    const tail = this.#byId.get(id);
    return tail !== undefined && timingSafeEqual(tail.secretHash, hash(secret)) ? tail : undefined;
  }

  async connect(tail: Tail, watcher: Watcher): Promise<void> {
    tail.watcher?.end();
    Object.assign(tail, { watcher, isForeign: false });
    this.#endAfter(tail, tail.expiresOn - Date.now());
    await this.#links?.connected(tail);
  }

  /** Its watcher has left, or never came. */
  async end(tail: Tail): Promise<void> {
    this.drop(tail.id);
    await this.#links?.ended(tail, false);
  }

  /** Without telling other nodes. */
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
  }

  /** At the end of the process. */
  async endAll(): Promise<void> {
    const own = [...this.#byId.values()].filter(({ isForeign }) => !isForeign);
    await Promise.all(own.map(async (tail) => this.end(tail)));
  }

  isWatched({ accountId, scriptId }: { accountId: string; scriptId: string }): boolean {
    return this.#byScope.size > 0 && (this.#byScope.has(scriptId) || this.#byScope.has(accountId));
  }

  /** Undefined where nobody wants to see a run that begins so. */
  watch(
    { accountId, scriptId }: { accountId: string; scriptId: string },
    run: Pick<TailEvent, "event" | "scriptVersion">,
  ): Watched | undefined {
    const wanted = [...(this.#byScope.get(scriptId) ?? []), ...(this.#byScope.get(accountId) ?? [])].filter(
      ({ filters, watcher }) => watcher !== undefined && wantsRun(filters, run),
    );
    if (wanted.length === 0) return undefined;
    return {
      tell(event) {
        for (const { filters, watcher } of wanted) if (wantsEvent(filters, event)) watcher?.tell(event);
      },
    };
  }

  #endAfter(tail: Tail, delayMs: number): void {
    clearTimeout(this.#timers.get(tail.id));
    // Where the other nodes cannot be told now, they find out when this one says no more of it.
    const end = (): void => void this.end(tail).catch(() => {});
    this.#timers.set(tail.id, setTimeout(end, delayMs).unref());
  }
}

/** Ids of scripts and of accounts are both random: none is the other's. */
const keyOf = ({ accountId, scriptId }: TailScope): string => scriptId ?? accountId;

const hash = (secret: string): Buffer => createHash("sha256").update(secret).digest();
