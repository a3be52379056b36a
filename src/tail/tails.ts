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

export interface Tail extends TailScope {
  id: string;
  filters: readonly Filter[];
  expiresOn: number;
  secretHash: Buffer;
  /** Where events go, once somebody has connected. */
  watcher: Watcher | undefined;
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
  notFound: (id: string) => new ApiError(404, 10057, `There is no tail with the id ${id}`),
  tooMany: () =>
    new ApiError(
      429,
      10058,
      `Expected at most ${tailsOfScopeMax} tails of a script, or of an account, at once`,
    ),
};

/**
 * Who watches which script. All of it is in the memory of one process, and a run that nobody watches costs one look into an
 * empty map.
 */
export class Tails {
  readonly #byScope = new Map<string, Set<Tail>>();
  readonly #byId = new Map<string, Tail>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  /** Grows with each tail that is made. */
  revision = 0;

  /** `secret` is known only to whoever gets this answer. */
  create(scope: TailScope, filters: readonly Filter[]): { tail: Tail; secret: string } {
    const siblings = this.#byScope.get(keyOf(scope)) ?? new Set();
    if (siblings.size >= tailsOfScopeMax) throw tailErrors.tooMany();
    const secret = randomBytes(24).toString("base64url");
    const tail: Tail = {
      ...scope,
      id: newId(),
      filters,
      expiresOn: Date.now() + lifetimeMs,
      secretHash: hash(secret),
      watcher: undefined,
    };
    this.#byScope.set(keyOf(scope), siblings.add(tail));
    this.#byId.set(tail.id, tail);
    this.revision++;
    this.#endAfter(tail, connectMs);
    return { tail, secret };
  }

  list(scope: TailScope): Tail[] {
    return [...(this.#byScope.get(keyOf(scope)) ?? [])];
  }

  delete(scope: TailScope, id: string): void {
    const tail = this.#byId.get(id);
    if (tail === undefined || keyOf(tail) !== keyOf(scope)) throw tailErrors.notFound(id);
    this.end(tail);
  }

  /** The tail that somebody who connects may watch. */
  find(id: string, secret: string): Tail | undefined {
    const tail = this.#byId.get(id);
    return tail !== undefined && timingSafeEqual(tail.secretHash, hash(secret)) ? tail : undefined;
  }

  connect(tail: Tail, watcher: Watcher): void {
    tail.watcher?.end();
    tail.watcher = watcher;
    this.#endAfter(tail, tail.expiresOn - Date.now());
  }

  end(tail: Tail): void {
    if (!this.#byId.delete(tail.id)) return;
    clearTimeout(this.#timers.get(tail.id));
    this.#timers.delete(tail.id);
    const siblings = this.#byScope.get(keyOf(tail));
    siblings?.delete(tail);
    if (siblings?.size === 0) this.#byScope.delete(keyOf(tail));
    tail.watcher?.end();
  }

  endAll(): void {
    for (const tail of this.#byId.values()) this.end(tail);
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
    this.#timers.set(tail.id, setTimeout(() => this.end(tail), delayMs).unref());
  }
}

/** Ids of scripts and of accounts are both random: none is the other's. */
const keyOf = ({ accountId, scriptId }: TailScope): string => scriptId ?? accountId;

const hash = (secret: string): Buffer => createHash("sha256").update(secret).digest();
