import type { Storage } from "../storage/storage.ts";
import { newId } from "../util/ids.ts";
import * as store from "./store.ts";

export interface Account {
  id: string;
  name: string;
  type: "standard" | "enterprise";
  enforceTwofactor: boolean;
  abuseContactEmail: string | null;
  /** Without billing nothing that costs can be switched on: smart routing is then not editable. */
  hasBilling: boolean;
  createdOn: number;
}

export interface User {
  id: string;
  email: string;
  firstName: string | null;
  lastName: string | null;
  telephone: string | null;
  country: string | null;
  zipcode: string | null;
  apiKeyHash: string | null;
  createdOn: number;
  modifiedOn: number;
}

export interface Membership {
  id: string;
  accountId: string;
  userId: string;
  status: "accepted" | "pending" | "rejected";
  roles: string[];
  createdOn: number;
}

export type UserDetails = Partial<Pick<User, "firstName" | "lastName" | "telephone" | "country" | "zipcode">>;
export type AccountSettings = Partial<Pick<Account, "name" | "enforceTwofactor" | "abuseContactEmail">>;

/** Accounts, users, and who belongs to what: few rows, asked for on every call, so all of them are kept in memory. */
export class Accounts {
  readonly #storage: Storage;
  #accounts = new Map<string, Account>();
  #users = new Map<string, User>();
  #memberships = new Map<string, Membership>();

  constructor(storage: Storage) {
    this.#storage = storage;
    storage.onChange(async (changes) => {
      if (changes.some((change) => change.kind === "account" || change.kind === "user")) await this.load();
    });
  }

  async load(): Promise<void> {
    const everything = await store.loadAll(this.#storage.read);
    this.#accounts = new Map(everything.accounts.map((account) => [account.id, account]));
    this.#users = new Map(everything.users.map((user) => [user.id, user]));
    this.#memberships = new Map(everything.memberships.map((membership) => [membership.id, membership]));
  }

  find(id: string): Account | undefined {
    return this.#accounts.get(id);
  }

  list(): Account[] {
    return [...this.#accounts.values()];
  }

  findUser(id: string): User | undefined {
    return this.#users.get(id);
  }

  findUserByEmail(email: string): User | undefined {
    const wanted = email.toLowerCase();
    return [...this.#users.values()].find((user) => user.email === wanted);
  }

  membershipsOf(userId: string): Membership[] {
    return [...this.#memberships.values()].filter((membership) => membership.userId === userId);
  }

  findMembership(id: string): Membership | undefined {
    return this.#memberships.get(id);
  }

  isMember(userId: string, accountId: string): boolean {
    return this.membershipsOf(userId).some((m) => m.accountId === accountId && m.status === "accepted");
  }

  /** Makes an account, with its maker as its first member. */
  async create(input: {
    id?: string;
    name: string;
    type: Account["type"];
    ownerUserId: string;
  }): Promise<Account> {
    const account: Account = {
      id: input.id ?? newId(),
      name: input.name,
      type: input.type,
      enforceTwofactor: false,
      abuseContactEmail: null,
      hasBilling: true,
      createdOn: Date.now(),
    };
    const membership: Membership = {
      id: newId(),
      accountId: account.id,
      userId: input.ownerUserId,
      status: "accepted",
      roles: ["Super Administrator - All Privileges"],
      createdOn: account.createdOn,
    };
    await this.#storage.write(async (trx, changed) => {
      await store.insertAccount(trx, account);
      await store.insertMembership(trx, membership);
      changed({ kind: "account", id: account.id });
    });
    return account;
  }

  async createUser(input: { email: string; apiKeyHash: string | null }): Promise<User> {
    const now = Date.now();
    const user: User = {
      id: newId(),
      email: input.email.toLowerCase(),
      firstName: null,
      lastName: null,
      telephone: null,
      country: null,
      zipcode: null,
      apiKeyHash: input.apiKeyHash,
      createdOn: now,
      modifiedOn: now,
    };
    await this.#storage.write(async (trx, changed) => {
      await store.insertUser(trx, user);
      changed({ kind: "user", id: user.id });
    });
    return user;
  }

  async updateUser(user: User, details: UserDetails & { apiKeyHash?: string }): Promise<User> {
    const updated: User = { ...user, ...details, modifiedOn: Date.now() };
    await this.#storage.write(async (trx, changed) => {
      await store.updateUser(trx, updated);
      changed({ kind: "user", id: user.id });
    });
    return updated;
  }

  async update(account: Account, settings: AccountSettings & { hasBilling?: boolean }): Promise<Account> {
    const updated: Account = { ...account, ...settings };
    await this.#storage.write(async (trx, changed) => {
      await store.updateAccount(trx, updated);
      changed({ kind: "account", id: account.id });
    });
    return updated;
  }

  async delete(id: string): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await store.deleteAccount(trx, id);
      changed({ kind: "account", id });
    });
  }

  async deleteMembership(id: string): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await store.deleteMembership(trx, id);
      changed({ kind: "account", id });
    });
  }
}
