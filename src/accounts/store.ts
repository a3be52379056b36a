import type { Read, Write } from "../storage/storage.ts";
import type { Account, Membership, User } from "./accounts.ts";

interface SettingsJson {
  enforce_twofactor: boolean;
  abuse_contact_email: string | null;
}

const settingsJson = (account: Account): string =>
  JSON.stringify({
    enforce_twofactor: account.enforceTwofactor,
    abuse_contact_email: account.abuseContactEmail,
  } satisfies SettingsJson);

export async function loadAll(
  read: Read,
): Promise<{ accounts: Account[]; users: User[]; memberships: Membership[] }> {
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
      createdOn: row.created_on,
      modifiedOn: row.modified_on,
    })),
    memberships: memberships.map((row) => ({
      id: row.id,
      accountId: row.account_id,
      userId: row.user_id,
      status: row.status as Membership["status"],
      roles: JSON.parse(row.roles) as string[],
      createdOn: row.created_on,
    })),
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
  await trx.deleteFrom("accounts").where("id", "=", id).execute();
}

export async function insertUser(trx: Write, user: User): Promise<void> {
  await trx
    .insertInto("users")
    .values({ id: user.id, email: user.email, created_on: user.createdOn, ...userColumns(user) })
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
      status: membership.status,
      roles: JSON.stringify(membership.roles),
      created_on: membership.createdOn,
    })
    .execute();
}

export async function deleteMembership(trx: Write, id: string): Promise<void> {
  await trx.deleteFrom("memberships").where("id", "=", id).execute();
}
