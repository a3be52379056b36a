import { hash } from "node:crypto";
import { BlockList, isIPv6 } from "node:net";
import { LRUCache } from "lru-cache";
import type { Accounts } from "../accounts/accounts.ts";
import type { Storage } from "../storage/storage.ts";
import { newId } from "../util/ids.ts";
import { Actor } from "./actor.ts";
import { PolicySet, type Policy } from "./policies.ts";
import { hashSecret, newSecret, sameHash } from "./secret.ts";
import * as store from "./store.ts";

export interface Token {
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

export type TokenInput = Pick<Token, "name" | "policies" | "condition" | "notBefore" | "expiresOn"> & {
  status?: Token["status"];
};

export type Refusal = "unknown" | "disabled" | "expired" | "not_yet_valid" | "address";

interface Known {
  token: Token;
  actor: Actor;
  allows(address: string): boolean;
}

const cacheMax = 10_000;
const lastUsedGrainMs = 60_000;

/** API tokens: made, changed, and turned into the actor behind a call. */
export class Tokens {
  readonly #storage: Storage;
  readonly #accounts: Accounts;
  readonly #pepper: string;
  // Unknown hashes are not kept: a flood of bad tokens must not push the good ones out.
  /** By a hash of the secret that is quicker to make than the one that is stored. */
  readonly #known = new LRUCache<string, Known>({ max: cacheMax });

  constructor(storage: Storage, accounts: Accounts, pepper: string) {
    this.#storage = storage;
    this.#accounts = accounts;
    this.#pepper = pepper;
    storage.onChange(async (changes) => {
      if (changes.some((change) => change.kind === "api_token" || change.kind === "account"))
        this.#known.clear();
    });
  }

  hash(secret: string): string {
    return hashSecret(secret, this.#pepper);
  }

  /** Who presents this secret from this address, or why they are refused. */
  async authenticate(secret: string, clientIp: string): Promise<{ actor: Actor; token: Token } | Refusal> {
    const known = this.#known.get(hash("sha256", secret)) ?? (await this.#learn(secret));
    if (known === undefined) return "unknown";
    const { token } = known;
    const now = Date.now();
    if (token.status === "disabled") return "disabled";
    if (token.expiresOn !== null && token.expiresOn <= now) return "expired";
    if (token.notBefore !== null && token.notBefore > now) return "not_yet_valid";
    if (!known.allows(clientIp)) return "address";
    this.#noteUse(token, now);
    return known;
  }

  /** The user who presents this legacy key. */
  authenticateKey(email: string, key: string): Actor | undefined {
    const user = this.#accounts.findUserByEmail(email);
    const keyHash = this.hash(key);
    if (user === undefined || user.apiKeyHash === null || !sameHash(keyHash, user.apiKeyHash))
      return undefined;
    return new Actor("key", user.id, user.id, undefined, (accountId) =>
      this.#accounts.isMember(user.id, accountId),
    );
  }

  async list(ownerId: string, page: { page: number; per_page: number; direction: "asc" | "desc" }) {
    return store.list(this.#storage.read, ownerId, page);
  }

  async find(ownerId: string, id: string): Promise<Token | undefined> {
    return store.findById(this.#storage.read, ownerId, id);
  }

  /** Makes a token. Its secret is in the answer, and nowhere afterwards. */
  async create(
    owner: { kind: "user" | "account"; id: string },
    input: TokenInput,
    secret = newSecret(),
  ): Promise<{ token: Token; secret: string }> {
    const now = Date.now();
    const token: Token = {
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
    await this.#storage.write(async (trx, changed) => {
      await store.insert(trx, token);
      changed({ kind: "api_token", id: token.id });
    });
    return { token, secret };
  }

  async update(token: Token, input: TokenInput): Promise<Token> {
    return this.#save({ ...token, ...input });
  }

  /** Gives a token a new secret; the old one is refused from now on. */
  async roll(token: Token): Promise<string> {
    const secret = newSecret();
    await this.#save({ ...token, secretHash: this.hash(secret) });
    return secret;
  }

  async delete(token: Token): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await store.remove(trx, token.id);
      changed({ kind: "api_token", id: token.id });
    });
  }

  async #save(token: Token): Promise<Token> {
    const updated = { ...token, modifiedOn: Date.now() };
    await this.#storage.write(async (trx, changed) => {
      await store.update(trx, updated);
      changed({ kind: "api_token", id: token.id });
    });
    return updated;
  }

  async #learn(secret: string): Promise<Known | undefined> {
    const token = await store.findByHash(this.#storage.read, this.hash(secret));
    if (token === undefined) return undefined;
    const { ownerKind, ownerId } = token;
    const reaches =
      ownerKind === "user"
        ? (accountId: string) => this.#accounts.isMember(ownerId, accountId)
        : (accountId: string) => accountId === ownerId;
    const userId = ownerKind === "user" ? ownerId : null;
    const actor = new Actor("token", token.id, userId, new PolicySet(token.policies), reaches);
    const known = { token, actor, allows: addressCheck(token.condition) };
    this.#known.set(hash("sha256", secret), known);
    return known;
  }

  /** `last_used_on` is kept to the minute; losing one is no harm, so nobody waits for it. */
  #noteUse(token: Token, now: number): void {
    if (token.lastUsedOn !== null && now - token.lastUsedOn < lastUsedGrainMs) return;
    token.lastUsedOn = now;
    this.#storage.write(async (trx) => store.touch(trx, token.id, now)).catch(() => {});
  }
}

function addressCheck(condition: Token["condition"]): (address: string) => boolean {
  const allowed = condition?.request_ip?.in ?? [];
  const refused = condition?.request_ip?.not_in ?? [];
  if (allowed.length === 0 && refused.length === 0) return () => true;
  const [allowList, refuseList] = [blockList(allowed), blockList(refused)];
  return (address) => {
    const plain = address.replace(/^::ffff:(?=\d+\.)/i, "");
    const family = isIPv6(plain) ? "ipv6" : "ipv4";
    if (allowed.length > 0 && !allowList.check(plain, family)) return false;
    return !refuseList.check(plain, family);
  };
}

function blockList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", length] = network.split("/");
    const family = isIPv6(address) ? "ipv6" : "ipv4";
    if (length === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(length), family);
  }
  return list;
}
