import { randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Actor } from "../access/actor.ts";
import { reloadByForgetting } from "../../platform/storage/changes/listeners.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { unwitnessed } from "../../platform/storage/witness.ts";
import { LoadingCache, entriesMax } from "../../platform/util/loading-cache.ts";
import type { ApiToken, TokenRefusal, Tokens } from "../tokens/tokens.ts";
import * as store from "./store.ts";
import { clock } from "../../platform/timers/clock.ts";

/** A session ends after this time, and earlier without use. */
export const sessionMsMax = 12 * 3_600_000;
export const idleMsMax = 2 * 3_600_000;
const lastUsedGrainMs = 60_000;
const perTokenMax = 100;
const cacheMax = 10_000;

/** A session in use: the caller that it stands for, and its end. */
export interface OpenSession {
  actor: Actor;
  token: ApiToken;
  createdOn: number;
  /** Without further use. */
  expiresOn: number;
}

/**
 * Sign-ins at the console. A session stands for its token: the token's conditions are checked at each use, and a
 * deleted, disabled or rolled token ends it at once.
 */
export class Sessions {
  readonly #storage: Storage;
  readonly #tokens: Tokens;
  readonly #known = new LoadingCache<string, store.StoredSession>(new LRUCache(entriesMax(cacheMax)));

  constructor(storage: Storage, tokens: Tokens) {
    this.#storage = storage;
    this.#tokens = tokens;
    const forget = (): void => this.#known.forget();
    storage.onChange(async (changes) => {
      if (changes.some((change) => change.kind === "dashboard_session")) forget();
    }, reloadByForgetting(forget));
  }

  /** Begins a session of a token and returns the cookie's value, which is not stored. */
  async begin(token: ApiToken): Promise<string> {
    const secret = randomBytes(32).toString("base64url");
    const now = clock.now();
    const session = {
      id: this.#tokens.hash(secret),
      tokenId: token.id,
      tokenHash: token.secretHash,
      createdOn: now,
      lastUsedOn: now,
    };
    await this.#storage.write(async (trx, changed) => {
      const removed = await store.insert(trx, session, {
        createdBefore: now - sessionMsMax,
        usedBefore: now - idleMsMax,
        max: perTokenMax,
      });
      for (const id of [session.id, ...removed]) changed({ kind: "dashboard_session", id });
    });
    return secret;
  }

  /** The session of a cookie's value, used from an address; or the reason why it is not valid. */
  async use(secret: string, clientIp: string): Promise<OpenSession | TokenRefusal> {
    const id = this.#tokens.hash(secret);
    const session =
      this.#known.peek(id) ?? (await this.#known.get(id, async () => store.find(this.#storage.read, id)));
    const now = clock.now();
    if (session === undefined) return "unknown";
    const endsOn = session.createdOn + sessionMsMax;
    if (endsOn <= now || session.lastUsedOn + idleMsMax <= now) return "expired";
    const known = await this.#tokens.authenticateAgain(session.tokenId, session.tokenHash, clientIp);
    if (typeof known === "string") return known;
    this.#noteUse(session, now);
    const { actor, token } = known;
    return { actor, token, createdOn: session.createdOn, expiresOn: Math.min(endsOn, now + idleMsMax) };
  }

  /** Ends the session of a cookie's value. Anyone may ask, so nothing is written if there is none. */
  async end(secret: string): Promise<void> {
    const id = this.#tokens.hash(secret);
    if ((await store.find(this.#storage.read, id)) === undefined) return;
    await this.#storage.write(async (trx, changed) => {
      await store.remove(trx, id);
      changed({ kind: "dashboard_session", id });
    });
  }

  /** At most once a minute and without waiting: a lost update costs at most a minute of idle time. */
  #noteUse(session: store.StoredSession, now: number): void {
    if (now - session.lastUsedOn < lastUsedGrainMs) return;
    session.lastUsedOn = now;
    this.#storage.write(async (trx) => store.touch(trx, session.id, now), unwitnessed).catch(() => {});
  }
}
