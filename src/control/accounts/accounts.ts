import { lockAccount } from "../../platform/storage/dialects.ts";
import { FreshReads } from "../../platform/storage/changes/fresh-reads.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import type { PermissionKey } from "../access/permissions.ts";
import { newId } from "../../platform/util/ids.ts";
import { ownerRole, permissionsOf } from "./roles.ts";
import * as store from "./store.ts";
import { clock } from "../../platform/timers/clock.ts";

/** An account. Times are milliseconds since 1970. */
export interface Account {
  id: string;
  name: string;
  type: "standard" | "enterprise";
  enforceTwofactor: boolean;
  abuseContactEmail: string | null;
  /** Without billing, paid features cannot be enabled: smart routing is not editable. */
  hasBilling: boolean;
  createdOn: number;
}

/** A person who can sign in. Times are milliseconds since 1970. */
export interface User {
  id: string;
  email: string;
  firstName: string | null;
  lastName: string | null;
  telephone: string | null;
  country: string | null;
  zipcode: string | null;
  apiKeyHash: string | null;
  /** The user was created by an accepted invitation, not by the configuration. */
  invited: boolean;
  createdOn: number;
  modifiedOn: number;
}

/** The roles of a user in an account. */
export interface Membership {
  id: string;
  accountId: string;
  userId: string;
  /** Names of roles. */
  roles: string[];
  createdOn: number;
}

/** Becomes a membership with the same id when it is accepted, which requires its secret. */
export interface Invitation {
  id: string;
  accountId: string;
  email: string;
  roles: string[];
  status: "pending" | "rejected";
  secretHash: string;
  /** The email address of the inviting user; null if an account token invited. */
  invitedBy: string | null;
  invitedOn: number;
  expiresOn: number;
}

export type UserDetails = Partial<Pick<User, "firstName" | "lastName" | "telephone" | "country" | "zipcode">>;
export type AccountSettings = Partial<Pick<Account, "name" | "enforceTwofactor" | "abuseContactEmail">>;

/**
 * Accounts, users and memberships. There are few rows and every call needs them, so all of them are in
 * memory.
 */
export class Accounts {
  readonly #storage: Storage;
  readonly #everything: FreshReads<store.Everything>;
  #accounts = new Map<string, Account>();
  #users = new Map<string, User>();
  #memberships = new Map<string, Membership>();
  #invitations = new Map<string, Invitation>();
  /** By user id and account id, joined with a space. */
  #permissions = new Map<string, ReadonlySet<PermissionKey>>();

  constructor(storage: Storage) {
    this.#storage = storage;
    this.#everything = new FreshReads(
      () => store.loadAll(storage.read),
      (everything) => this.#install(everything),
    );
    storage.onChange(async (changes) => {
      if (changes.some((change) => change.kind === "account" || change.kind === "user")) await this.load();
    }, this.#everything.reload);
  }

  async load(): Promise<void> {
    await this.#everything.load();
  }

  #install(everything: store.Everything): void {
    this.#accounts = new Map(everything.accounts.map((account) => [account.id, account]));
    this.#users = new Map(everything.users.map((user) => [user.id, user]));
    this.#memberships = new Map(everything.memberships.map((membership) => [membership.id, membership]));
    this.#invitations = new Map(everything.invitations.map((invitation) => [invitation.id, invitation]));
    this.#permissions = new Map(
      everything.memberships.map(({ userId, accountId, roles }) => [
        `${userId} ${accountId}`,
        permissionsOf(roles),
      ]),
    );
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

  membersOf(accountId: string): Membership[] {
    return [...this.#memberships.values()].filter((membership) => membership.accountId === accountId);
  }

  isMember(userId: string, accountId: string): boolean {
    return this.#permissions.has(`${userId} ${accountId}`);
  }

  /** Whether the user's roles allow a permission in the account and on its zones. */
  may(userId: string, permission: PermissionKey, accountId: string): boolean {
    return this.#permissions.get(`${userId} ${accountId}`)?.has(permission) ?? false;
  }

  findInvitation(id: string): Invitation | undefined {
    return this.#invitations.get(id);
  }

  invitationsOf(accountId: string): Invitation[] {
    return [...this.#invitations.values()].filter((invitation) => invitation.accountId === accountId);
  }

  invitationsFor(email: string): Invitation[] {
    return [...this.#invitations.values()].filter((invitation) => invitation.email === email);
  }

  /** Creates an account. Its owner becomes its first member, with the owner role. */
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
      createdOn: clock.now(),
    };
    const membership: Membership = {
      id: newId(),
      accountId: account.id,
      userId: input.ownerUserId,
      roles: [ownerRole.name],
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
    const now = clock.now();
    const user: User = {
      id: newId(),
      email: input.email.toLowerCase(),
      firstName: null,
      lastName: null,
      telephone: null,
      country: null,
      zipcode: null,
      apiKeyHash: input.apiKeyHash,
      invited: false,
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
    const updated: User = { ...user, ...details, modifiedOn: clock.now() };
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
      await lockAccount(this.#storage, trx, id);
      await store.deleteAccount(trx, id);
      changed({ kind: "account", id });
    });
  }
}
