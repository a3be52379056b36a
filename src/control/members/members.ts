import { isUniqueViolation, lockAccount } from "../../platform/storage/dialects.ts";
import type { Change, Storage, Write } from "../../platform/storage/storage.ts";
import type { Actor } from "../access/actor.ts";
import type { GrantedAuthority } from "../tokens/delegation.ts";
import { newSecret, sameHash } from "../access/secret.ts";
import type { Tokens } from "../tokens/tokens.ts";
import { newId } from "../../platform/util/ids.ts";
import type { Accounts, Invitation, Membership, User } from "../accounts/accounts.ts";
import { memberErrors } from "./errors.ts";
import { allPolicies } from "./owner.ts";
import { ownerRole, policiesOf } from "../accounts/roles.ts";
import * as store from "../accounts/store.ts";
import { clock } from "../../platform/timers/clock.ts";

/** A member of an account, or an open or rejected invitation to it. */
export type Member = Membership | Invitation;
export const isInvitation = (member: Member): member is Invitation => "email" in member;

const invitationMs = 7 * 86_400_000;
const membersMax = 1000;

/** The authority of a membership: that of an account token without an expiry or an address restriction. */
const authorityOf = (accountId: string, roles: readonly string[]): GrantedAuthority => ({
  ownerKind: "account",
  ownerId: accountId,
  policies: policiesOf(roles, accountId),
  condition: null,
  expiresOn: null,
});

/** Manages memberships: invitations, acceptance, role changes and removal. */
export class Members {
  readonly #storage: Storage;
  readonly #accounts: Accounts;
  readonly #tokens: Tokens;

  constructor(storage: Storage, accounts: Accounts, tokens: Tokens) {
    this.#storage = storage;
    this.#accounts = accounts;
    this.#tokens = tokens;
  }

  list(accountId: string): Member[] {
    return [...this.#accounts.membersOf(accountId), ...this.#accounts.invitationsOf(accountId)];
  }

  /** Throws if the account has no such member. */
  get(accountId: string, id: string): Member {
    const member = this.#accounts.findMembership(id) ?? this.#accounts.findInvitation(id);
    if (member?.accountId !== accountId) throw memberErrors.notFound(id);
    return member;
  }

  /** Creates an invitation. The returned secret is not stored and cannot be read again. */
  async invite(
    caller: Actor,
    accountId: string,
    input: { email: string; roles: string[] },
  ): Promise<{ invitation: Invitation; secret: string }> {
    const secret = newSecret();
    const now = clock.now();
    const email = input.email.toLowerCase();
    const inviter = caller.userId === null ? undefined : this.#accounts.findUser(caller.userId);
    const invitation: Invitation = {
      id: newId(),
      accountId,
      email,
      roles: input.roles,
      status: "pending",
      secretHash: this.#tokens.hash(secret),
      invitedBy: inviter?.email ?? null,
      invitedOn: now,
      expiresOn: now + invitationMs,
    };
    await this.#storage.write(async (trx, changed) => {
      const after = authorityOf(accountId, input.roles);
      await this.#tokens.refuseBeyond(trx, caller, accountId, { after });
      const user = await store.findUserByEmail(trx, email);
      if (user !== undefined && (await store.isMember(trx, user.id, accountId)))
        throw memberErrors.exists(email);
      const invitations = await store.invitationsOf(trx, accountId);
      const before = invitations.find((each) => each.email === email);
      if (before !== undefined && isOpen(before)) throw memberErrors.exists(email);
      if (before !== undefined) await store.deleteInvitation(trx, before.id);
      const members = await store.rolesOfMembers(trx, accountId);
      if (members.size + invitations.length >= membersMax) throw memberErrors.tooMany(membersMax);
      await store.insertInvitation(trx, invitation);
      changed({ kind: "account", id: accountId });
    });
    return { invitation, secret };
  }

  async setRoles(caller: Actor, accountId: string, id: string, roles: string[]): Promise<Member> {
    await this.#change(caller, accountId, id, roles);
    return this.get(accountId, id);
  }

  async remove(caller: Actor, accountId: string, id: string): Promise<void> {
    await this.#change(caller, accountId, id, undefined);
  }

  /** Removes a membership at its user's own request. */
  async leave({ id, accountId }: Membership): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await lockAccount(this.#storage, trx, accountId);
      await this.#put(trx, changed, accountId, id, undefined);
    });
  }

  /**
   * Accepts an invitation as a new user and returns the user's first token. Throws if the address already has
   * a user, who must accept with their own credentials.
   */
  async redeem(id: string, secret: string): Promise<{ user: User; membership: Membership; token: string }> {
    const token = newSecret();
    const now = clock.now();
    const redeeming = this.#storage.write(async (trx, changed) => {
      const { email, accountId, roles } = await this.#open(trx, id, secret);
      if ((await store.findUserByEmail(trx, email)) !== undefined) throw memberErrors.userExists(email, id);
      const user: User = {
        ...{
          id: newId(),
          email,
          firstName: null,
          lastName: null,
          telephone: null,
          country: null,
          zipcode: null,
        },
        ...{ apiKeyHash: null, invited: true, createdOn: now, modifiedOn: now },
      };
      await store.insertUser(trx, user);
      changed({ kind: "user", id: user.id });
      const membership = { id, accountId, userId: user.id, roles, createdOn: now };
      await this.#join(trx, changed, membership);
      const input = { policies: allPolicies(user.id), condition: null, notBefore: null, expiresOn: null };
      const owner = { kind: "user" as const, id: user.id };
      await this.#tokens.insert(trx, changed, owner, { ...input, name: "Invitation" }, token);
      return { user, membership, token };
    });
    return redeeming.catch((error: unknown) => {
      // Another account's invitation to the same address was accepted concurrently.
      throw isUniqueViolation(error) ? memberErrors.userExists("with the same address", id) : error;
    });
  }

  /**
   * A user accepts an invitation. The user's address is not proof, because no mail is sent: a different
   * person may have created the user with this address. The secret proves that the invited person accepts.
   */
  async accept(user: User, id: string, secret: string): Promise<Membership> {
    return this.#storage.write(async (trx, changed) => {
      const { email, accountId, roles } = await this.#open(trx, id, secret);
      if (email !== user.email) throw memberErrors.noInvitation();
      const membership = { id, accountId, userId: user.id, roles, createdOn: clock.now() };
      await this.#join(trx, changed, membership);
      return membership;
    });
  }

  async reject(invitation: Invitation): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await store.updateInvitation(trx, invitation.id, { status: "rejected" });
      changed({ kind: "account", id: invitation.accountId });
    });
  }

  /** Sets the roles of a member, or removes the member if `roles` is undefined. */
  async #change(caller: Actor, accountId: string, id: string, roles: string[] | undefined): Promise<void> {
    await this.#storage.write(async (trx, changed) => {
      await lockAccount(this.#storage, trx, accountId);
      const held = await this.#rolesOf(trx, accountId, id);
      await this.#tokens.refuseBeyond(trx, caller, accountId, {
        before: authorityOf(accountId, held),
        ...(roles === undefined ? {} : { after: authorityOf(accountId, roles) }),
      });
      await this.#put(trx, changed, accountId, id, roles);
    });
  }

  async #rolesOf(trx: Write, accountId: string, id: string): Promise<string[]> {
    const ofMember = (await store.rolesOfMembers(trx, accountId)).get(id);
    if (ofMember !== undefined) return ofMember;
    const invitation = await store.findInvitation(trx, id);
    if (invitation?.accountId !== accountId) throw memberErrors.notFound(id);
    return invitation.roles;
  }

  async #put(
    trx: Write,
    changed: (change: Change) => void,
    accountId: string,
    id: string,
    roles: string[] | undefined,
  ): Promise<void> {
    const members = await store.rolesOfMembers(trx, accountId);
    if (members.has(id)) {
      if (roles === undefined) members.delete(id);
      else members.set(id, roles);
      if (!members.values().some((each) => each.includes(ownerRole.name))) throw memberErrors.lastOwner();
      if (roles === undefined) await store.deleteMembership(trx, id);
      else await store.updateRoles(trx, id, roles);
    } else if (roles === undefined) await store.deleteInvitation(trx, id);
    else await store.updateInvitation(trx, id, { roles });
    changed({ kind: "account", id: accountId });
  }

  /** Finds an open invitation by id and secret, and locks its account until the transaction ends. */
  async #open(trx: Write, id: string, secret: string): Promise<Invitation> {
    const found = await store.findInvitation(trx, id);
    if (found !== undefined) await lockAccount(this.#storage, trx, found.accountId);
    const invitation = found && (await store.findInvitation(trx, id));
    const isRight = sameHash(this.#tokens.hash(secret), invitation?.secretHash ?? "");
    if (invitation === undefined || !isRight || !isOpen(invitation)) throw memberErrors.noInvitation();
    return invitation;
  }

  async #join(trx: Write, changed: (change: Change) => void, membership: Membership): Promise<void> {
    await store.deleteInvitation(trx, membership.id);
    await store.insertMembership(trx, membership);
    changed({ kind: "account", id: membership.accountId });
  }
}

export const isOpen = ({ status, expiresOn }: Invitation): boolean =>
  status === "pending" && expiresOn > clock.now();
