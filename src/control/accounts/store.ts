import type { Selectable } from "kysely";
import type { InvitationsTable } from "./tables.ts";
import type { Read, Write } from "../../platform/storage/storage.ts";
import type { PermissionKey } from "../access/permissions.ts";
import type { Account, Invitation, Membership, User } from "./accounts.ts";
import { permissionsOf } from "./roles.ts";

interface SettingsJson {
  enforce_twofactor: boolean;
  abuse_contact_email: string | null;
}

const settingsJson = (account: Account): string =>
  JSON.stringify({
    enforce_twofactor: account.enforceTwofactor,
    abuse_contact_email: account.abuseContactEmail,
  } satisfies SettingsJson);

type InvitationRow = Selectable<InvitationsTable>;
const toInvitation = (row: InvitationRow): Invitation => ({
  id: row.id,
  accountId: row.account_id,
  email: row.email,
  roles: JSON.parse(row.roles) as string[],
  status: row.status,
  secretHash: row.secret_hash,
  invitedBy: row.invited_by,
  invitedOn: row.invited_on,
  expiresOn: row.expires_on,
});

export interface Everything {
  accounts: Account[];
  users: User[];
  memberships: Membership[];
  invitations: Invitation[];
}

export async function loadAll(read: Read): Promise<Everything> {
  const accounts = await read
    .selectFrom("accounts")
    .selectAll()
    .orderBy("created_on")
    .orderBy("id")
    .execute();
  const users = await read.selectFrom("users").selectAll().execute();
  const memberships = await read
    .selectFrom("memberships")
    .selectAll()
    .orderBy("created_on")
    .orderBy("id")
    .execute();
  const invitations = await read
    .selectFrom("invitations")
    .selectAll()
    .orderBy("invited_on")
    .orderBy("id")
    .execute();
  return {
    accounts: accounts.map((row) => {
      const settings = JSON.parse(row.settings) as SettingsJson;
      return {
        id: row.id,
        name: row.name,
        type: row.type as Account["type"],
        enforceTwofactor: settings.enforce_twofactor,
        abuseContactEmail: settings.abuse_contact_email,
        hasBilling: row.has_billing === 1,
        createdOn: row.created_on,
      };
    }),
    users: users.map((row) => ({
      id: row.id,
      email: row.email,
      firstName: row.first_name,
      lastName: row.last_name,
      telephone: row.telephone,
      country: row.country,
      zipcode: row.zipcode,
      apiKeyHash: row.api_key_hash,
      invited: row.invited === 1,
      createdOn: row.created_on,
      modifiedOn: row.modified_on,
    })),
    memberships: memberships.map((row) => ({
      id: row.id,
      accountId: row.account_id,
      userId: row.user_id,
      roles: JSON.parse(row.roles) as string[],
      createdOn: row.created_on,
    })),
    invitations: invitations.map(toInvitation),
  };
}

export async function insertAccount(trx: Write, account: Account): Promise<void> {
  await trx
    .insertInto("accounts")
    .values({
      id: account.id,
      name: account.name,
      type: account.type,
      settings: settingsJson(account),
      has_billing: account.hasBilling ? 1 : 0,
      created_on: account.createdOn,
    })
    .execute();
}

export async function updateAccount(trx: Write, account: Account): Promise<void> {
  await trx
    .updateTable("accounts")
    .set({
      name: account.name,
      type: account.type,
      settings: settingsJson(account),
      has_billing: account.hasBilling ? 1 : 0,
    })
    .where("id", "=", account.id)
    .execute();
}

export async function deleteAccount(trx: Write, id: string): Promise<void> {
  // The configuration can create a new account with the same id, which must not inherit these rows.
  await trx.deleteFrom("api_tokens").where("owner_kind", "=", "account").where("owner_id", "=", id).execute();
  await trx.deleteFrom("tails").where("account_id", "=", id).execute();
  await trx.deleteFrom("accounts").where("id", "=", id).execute();
}

export async function insertUser(trx: Write, user: User): Promise<void> {
  await trx
    .insertInto("users")
    .values({
      id: user.id,
      email: user.email,
      invited: user.invited ? 1 : 0,
      created_on: user.createdOn,
      ...userColumns(user),
    })
    .execute();
}

export async function updateUser(trx: Write, user: User): Promise<void> {
  await trx.updateTable("users").set(userColumns(user)).where("id", "=", user.id).execute();
}

const userColumns = (user: User) => ({
  first_name: user.firstName,
  last_name: user.lastName,
  telephone: user.telephone,
  country: user.country,
  zipcode: user.zipcode,
  api_key_hash: user.apiKeyHash,
  modified_on: user.modifiedOn,
});

export async function insertMembership(trx: Write, membership: Membership): Promise<void> {
  await trx
    .insertInto("memberships")
    .values({
      id: membership.id,
      account_id: membership.accountId,
      user_id: membership.userId,
      status: "accepted",
      roles: JSON.stringify(membership.roles),
      created_on: membership.createdOn,
    })
    .execute();
}

/** The permissions of a user's roles in an account, read in this transaction. */
export async function permissionsIn(
  trx: Write,
  userId: string,
  accountId: string,
): Promise<ReadonlySet<PermissionKey>> {
  const row = await trx
    .selectFrom("memberships")
    .select("roles")
    .where("account_id", "=", accountId)
    .where("user_id", "=", userId)
    .executeTakeFirst();
  return permissionsOf(row === undefined ? [] : (JSON.parse(row.roles) as string[]));
}

/** The roles of every member of an account, by membership id. */
export async function rolesOfMembers(trx: Write, accountId: string): Promise<Map<string, string[]>> {
  const rows = await trx
    .selectFrom("memberships")
    .select(["id", "roles"])
    .where("account_id", "=", accountId)
    .execute();
  return new Map(rows.map(({ id, roles }) => [id, JSON.parse(roles) as string[]]));
}

export async function findInvitation(trx: Write, id: string): Promise<Invitation | undefined> {
  const row = await trx.selectFrom("invitations").selectAll().where("id", "=", id).executeTakeFirst();
  return row && toInvitation(row);
}

export async function invitationsOf(trx: Write, accountId: string): Promise<Invitation[]> {
  const rows = await trx.selectFrom("invitations").selectAll().where("account_id", "=", accountId).execute();
  return rows.map(toInvitation);
}

export async function findUserByEmail(trx: Write, email: string): Promise<{ id: string } | undefined> {
  return trx.selectFrom("users").select("id").where("email", "=", email).executeTakeFirst();
}

export async function isMember(trx: Write, userId: string, accountId: string): Promise<boolean> {
  const row = await trx
    .selectFrom("memberships")
    .select("id")
    .where("account_id", "=", accountId)
    .where("user_id", "=", userId)
    .executeTakeFirst();
  return row !== undefined;
}

export async function insertInvitation(trx: Write, invitation: Invitation): Promise<void> {
  await trx
    .insertInto("invitations")
    .values({
      id: invitation.id,
      account_id: invitation.accountId,
      email: invitation.email,
      roles: JSON.stringify(invitation.roles),
      status: invitation.status,
      secret_hash: invitation.secretHash,
      invited_by: invitation.invitedBy,
      invited_on: invitation.invitedOn,
      expires_on: invitation.expiresOn,
    })
    .execute();
}

export async function updateInvitation(
  trx: Write,
  id: string,
  change: { roles: readonly string[] } | { status: Invitation["status"] },
): Promise<void> {
  const columns = "roles" in change ? { roles: JSON.stringify(change.roles) } : change;
  await trx.updateTable("invitations").set(columns).where("id", "=", id).execute();
}

export async function deleteInvitation(trx: Write, id: string): Promise<void> {
  await trx.deleteFrom("invitations").where("id", "=", id).execute();
}

export async function updateRoles(trx: Write, id: string, roles: readonly string[]): Promise<void> {
  await trx
    .updateTable("memberships")
    .set({ roles: JSON.stringify(roles) })
    .where("id", "=", id)
    .execute();
}

export async function deleteMembership(trx: Write, id: string): Promise<void> {
  await trx.deleteFrom("memberships").where("id", "=", id).execute();
}
