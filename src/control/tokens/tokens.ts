import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Accounts } from "../accounts/accounts.ts";
import { permissionsIn } from "../accounts/store.ts";
import { reloadByForgetting } from "../../platform/storage/changes/listeners.ts";
import { lockAccount } from "../../platform/storage/dialects.ts";
import type { Change, Storage, Write } from "../../platform/storage/storage.ts";
import { unwitnessed } from "../../platform/storage/witness.ts";
import { newId } from "../../platform/util/ids.ts";
import { LoadingCache, entriesMax } from "../../platform/util/loading-cache.ts";
import type { Zones } from "../zones/zones.ts";
import { Actor, type CallerId, type ActorOwner } from "../access/actor.ts";
import { addressesOf, refuseDelegation, type Delegation } from "./delegation.ts";
import { tokenErrors } from "./errors.ts";
import type { PermissionKey } from "../access/permissions.ts";
import { PolicySet, type Policy } from "../access/policies.ts";
import { hashSecret, newSecret, sameHash } from "../access/secret.ts";
import * as store from "./store.ts";
import { clock } from "../../platform/timers/clock.ts";

/** An API token. Times are milliseconds since 1970. */
export interface ApiToken {
  id: string;
  ownerKind: "user" | "account";
  ownerId: string;
  name: string;
  status: "active" | "disabled";
  policies: Policy[];
  condition: { request_ip?: { in?: string[] | undefined; not_in?: string[] | undefined } | undefined } | null;
  secretHash: string;
  notBefore: number | null;
  expiresOn: number | null;
  issuedOn: number;
  modifiedOn: number;
  lastUsedOn: number | null;
}

export type TokenOwner = { kind: ApiToken["ownerKind"]; id: string };
export type TokenInput = Pick<ApiToken, "name" | "policies" | "condition" | "notBefore" | "expiresOn"> & {
  status?: ApiToken["status"];
};

/** The reasons for refusing a secret. */
export type TokenRefusal = "unknown" | "disabled" | "expired" | "not_yet_valid" | "address";

interface Known {
  token: ApiToken;
  actor: Actor;
  allows(address: string): boolean;
}

interface LockedAuthority {
  tokens: ReadonlyMap<string, ApiToken>;
  /** See Directory in delegation.ts. */
  callerPermissions: ReadonlySet<PermissionKey> | undefined;
}

const cacheMax = 10_000;
const lastUsedGrainMs = 60_000;

/** API tokens: creates and changes them, and authenticates callers with them. */
export class Tokens {
  readonly #storage: Storage;
  readonly #accounts: Accounts;
  readonly #zones: Pick<Zones, "find">;
  readonly #pepper: string;
  // Unknown hashes are not cached, so that a flood of bad tokens cannot evict valid ones.
  /** Keyed by a plain SHA-256 of the secret, which is faster than the stored keyed hash. */
  readonly #known = new LoadingCache<string, Known>(new LRUCache(entriesMax(cacheMax)));

  constructor(storage: Storage, accounts: Accounts, pepper: string, zones: Pick<Zones, "find">) {
    this.#storage = storage;
    this.#accounts = accounts;
    this.#zones = zones;
    this.#pepper = pepper;
    const forget = (): void => this.#known.forget();
    storage.onChange(async (changes) => {
      if (changes.some((change) => change.kind === "api_token" || change.kind === "account")) forget();
    }, reloadByForgetting(forget));
  }

  hash(secret: string): string {
    return hashSecret(secret, this.#pepper);
  }

  /** The actor and token for a secret presented from an address, or the reason for refusing it. */
  async authenticate(
    secret: string,
    clientIp: string,
  ): Promise<{ actor: Actor; token: ApiToken } | TokenRefusal> {
    const key = hash("sha256", secret);
    const known =
      this.#known.peek(key) ??
      (await this.#known.get(key, async () =>
        this.#knownOf(await store.findByHash(this.#storage.read, this.hash(secret))),
      ));
    return known === undefined ? "unknown" : this.#admit(known, clientIp);
  }

  /** Like `authenticate`, for a token that was authenticated before and had this hash then. */
  async authenticateAgain(
    id: string,
    secretHash: string,
    clientIp: string,
  ): Promise<{ actor: Actor; token: ApiToken } | TokenRefusal> {
    const key = `id ${id}`;
    const known =
      this.#known.peek(key) ??
      (await this.#known.get(key, async () => this.#knownOf(await store.findById(this.#storage.read, id))));
    return known?.token.secretHash === secretHash ? this.#admit(known, clientIp) : "unknown";
  }

  /** The actor of a secret, also of one that `authenticate` refuses; undefined if no token has it. */
  async actorOf(secret: string): Promise<Actor | undefined> {
    return this.#knownOf(await store.findByHash(this.#storage.read, this.hash(secret)))?.actor;
  }

  #admit(known: Known, clientIp: string): Known | TokenRefusal {
    const { token } = known;
    const now = clock.now();
    if (token.status === "disabled") return "disabled";
    if (token.expiresOn !== null && token.expiresOn <= now) return "expired";
    if (token.notBefore !== null && token.notBefore > now) return "not_yet_valid";
    if (!known.allows(clientIp)) return "address";
    this.#noteUse(token, now);
    return known;
  }

  /** The actor for a user's legacy key; undefined if the key is wrong. */
  authenticateKey(email: string, key: string): Actor | undefined {
    const user = this.#accounts.findUserByEmail(email);
    const keyHash = this.hash(key);
    if (user === undefined || user.apiKeyHash === null || !sameHash(keyHash, user.apiKeyHash))
      return undefined;
    return this.#withKey(user.id);
  }

  /** The actor that an earlier caller is now; undefined if its token or key is no longer valid. */
  async actorNow({ kind, id }: CallerId): Promise<Actor | undefined> {
    if (kind === "key")
      return this.#accounts.findUser(id)?.apiKeyHash == null ? undefined : this.#withKey(id);
    const token = await store.findById(this.#storage.read, id);
    if (token === undefined || token.status !== "active") return undefined;
    return token.expiresOn !== null && token.expiresOn <= clock.now() ? undefined : this.#withToken(token);
  }

  /** The number of tokens that are over. */
  async countExpired(): Promise<number> {
    return store.countExpired(this.#storage.read, clock.now());
  }

  async list(ownerId: string, page: { page: number; per_page: number; direction: "asc" | "desc" }) {
    return store.list(this.#storage.read, ownerId, page);
  }

  /** Throws if the owner has no such token. */
  async get(ownerId: string, id: string): Promise<ApiToken> {
    const token = await this.find(ownerId, id);
    if (token === undefined) throw tokenErrors.notFound(id);
    return token;
  }

  async find(ownerId: string, id: string): Promise<ApiToken | undefined> {
    const token = await store.findById(this.#storage.read, id);
    return token?.ownerId === ownerId ? token : undefined;
  }

  /** Creates a token for the installation itself, without a caller to check. */
  async install(owner: TokenOwner, input: TokenInput, secret = newSecret()): Promise<{ secret: string }> {
    await this.#storage.write(async (trx, changed) => this.insert(trx, changed, owner, input, secret));
    return { secret };
  }

  /** Like `install`, within a transaction. */
  async insert(
    trx: Write,
    changed: (change: Change) => void,
    owner: TokenOwner,
    input: TokenInput,
    secret: string,
  ): Promise<void> {
    const token = this.#make(owner, input, secret);
    await store.insert(trx, token);
    changed({ kind: "api_token", id: token.id });
  }

  /** Creates a token for a caller. The returned secret is not stored and cannot be read again. */
  async create(
    caller: Actor,
    owner: TokenOwner,
    input: TokenInput,
  ): Promise<{ token: ApiToken; secret: string }> {
    const secret = newSecret();
    const token = this.#make(owner, input, secret);
    await this.#storage.write(async (trx, changed) => {
      const locked = await this.#lockAuthority(trx, caller, owner);
      this.#refuse(caller, locked, { after: token });
      await store.insert(trx, token);
      changed({ kind: "api_token", id: token.id });
    });
    return { token, secret };
  }

  async update(caller: Actor, owner: TokenOwner, id: string, input: TokenInput): Promise<ApiToken> {
    return this.#change(caller, owner, id, (token) => ({ ...token, ...input }));
  }

  /** Gives a token a new secret. The old one stops working. */
  async roll(caller: Actor, owner: TokenOwner, id: string): Promise<string> {
    const secret = newSecret();
    await this.#change(caller, owner, id, (token) => ({ ...token, secretHash: this.hash(secret) }));
    return secret;
  }

  async delete(caller: Actor, owner: TokenOwner, id: string): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      const locked = await this.#lockAuthority(trx, caller, owner, id);
      this.#refuse(caller, locked, { before: owned(locked.tokens, owner.id, id) });
      await store.remove(trx, id);
      changed({ kind: "api_token", id });
    });
  }

  /**
   * Throws if a caller would grant or revoke more in an account than it has. Locks the rows that decide this
   * until the transaction ends.
   */
  async refuseBeyond(trx: Write, caller: Actor, accountId: string, change: Delegation): Promise<void> {
    this.#refuse(caller, await this.#lockAuthority(trx, caller, { kind: "account", id: accountId }), change);
  }

  #make(owner: TokenOwner, input: TokenInput, secret: string): ApiToken {
    const now = clock.now();
    return {
      id: newId(),
      ownerKind: owner.kind,
      ownerId: owner.id,
      status: "active",
      ...input,
      secretHash: this.hash(secret),
      issuedOn: now,
      modifiedOn: now,
      lastUsedOn: null,
    };
  }

  async #change(
    caller: Actor,
    owner: TokenOwner,
    id: string,
    change: (token: ApiToken) => ApiToken,
  ): Promise<ApiToken> {
    return this.#storage.write(async (trx, changed) => {
      const locked = await this.#lockAuthority(trx, caller, owner, id);
      const before = owned(locked.tokens, owner.id, id);
      const after = { ...change(before), modifiedOn: clock.now() };
      this.#refuse(caller, locked, { before, after });
      await store.update(trx, after);
      changed({ kind: "api_token", id });
      return after;
    });
  }

  /**
   * Reads and locks the rows that decide a delegation, until the transaction ends: the caller's roles and
   * token, and the owner's token `id`.
   */
  async #lockAuthority(trx: Write, caller: Actor, owner: TokenOwner, id?: string): Promise<LockedAuthority> {
    let callerPermissions: LockedAuthority["callerPermissions"];
    if (owner.kind === "account") {
      await lockAccount(this.#storage, trx, owner.id);
      if (caller.userId !== null) callerPermissions = await permissionsIn(trx, caller.userId, owner.id);
    }
    const ids = [...(caller.kind === "token" ? [caller.id] : []), ...(id === undefined ? [] : [id])];
    return { tokens: await store.lock(trx, this.#storage.engine, ids), callerPermissions };
  }

  #refuse(caller: Actor, { tokens, callerPermissions }: LockedAuthority, change: Delegation): void {
    const own = caller.kind === "token" ? tokens.get(caller.id) : undefined;
    // The caller's own token may have been revoked since the call was authenticated.
    const isOver = own !== undefined && own.expiresOn !== null && own.expiresOn <= clock.now();
    if (caller.kind === "token" && (own?.status !== "active" || isOver)) throw tokenErrors.callerRevoked();
    refuseDelegation(caller, own, change, {
      accountOfZone: (zoneId) => this.#zones.find(zoneId)?.accountId,
      isMember: (userId, accountId) => this.#accounts.isMember(userId, accountId),
      callerPermissions,
    });
  }

  #knownOf(token: ApiToken | undefined): Known | undefined {
    if (token === undefined) return undefined;
    const { condition } = token;
    const addresses = addressesOf(token);
    return {
      token,
      actor: this.#withToken(token),
      allows: condition === null ? () => true : (ip: string) => addresses.has(ip),
    };
  }

  #withKey(userId: string): Actor {
    return new Actor("key", userId, userId, undefined, this.#asOwner(userId), { name: "", ownerId: userId });
  }

  #withToken({ id, name, ownerKind, ownerId, policies }: ApiToken): Actor {
    const isOwner = (accountId: string): boolean => accountId === ownerId;
    const owner: ActorOwner =
      ownerKind === "user"
        ? this.#asOwner(ownerId)
        : { belongsTo: isOwner, may: (_permission, accountId) => isOwner(accountId) };
    const userId = ownerKind === "user" ? ownerId : null;
    return new Actor("token", id, userId, new PolicySet(policies), owner, { name, ownerId });
  }

  /** Looks memberships and roles up each time, because they change while tokens are cached. */
  #asOwner(userId: string): ActorOwner {
    return {
      belongsTo: (accountId) => this.#accounts.isMember(userId, accountId),
      may: (permission, accountId) => this.#accounts.may(userId, permission, accountId),
    };
  }

  /**
   * Writes `last_used_on` at most once a minute and without waiting, because losing an update does no harm.
   */
  #noteUse(token: ApiToken, now: number): void {
    if (token.lastUsedOn !== null && now - token.lastUsedOn < lastUsedGrainMs) return;
    token.lastUsedOn = now;
    this.#storage.write(async (trx) => store.touch(trx, token.id, now), unwitnessed).catch(() => {});
  }
}

function owned(held: ReadonlyMap<string, ApiToken>, ownerId: string, id: string): ApiToken {
  const token = held.get(id);
  if (token?.ownerId !== ownerId) throw tokenErrors.notFound(id);
  return token;
}
