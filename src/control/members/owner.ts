import type { Config } from "../../platform/config/settings.ts";
import { ConfigError } from "../../platform/config/config.ts";
import { inTurnsOfStarts } from "../../platform/storage/dialects.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { permissionGroups } from "../access/permissions.ts";
import type { Policy } from "../access/policies.ts";
import type { Tokens } from "../tokens/tokens.ts";
import { newId } from "../../platform/util/ids.ts";
import type { Account, Accounts, User } from "../accounts/accounts.ts";

/** The account and the user of the installation's owner. */
export interface InstallationOwner {
  account: Account;
  user: User;
  /** The API token, if this start created it. Later starts know only its hash. */
  newToken: string | undefined;
}

/**
 * Creates the first account, its owner and an API token if they are missing, and applies the configured
 * credentials and billing.
 */
export async function ensureOwner(
  config: Config,
  storage: Storage,
  accounts: Accounts,
  tokens: Tokens,
): Promise<InstallationOwner> {
  return inTurnsOfStarts(storage, async () => {
    // Another node may have created them just now, and its change notice may not have arrived yet.
    if (storage.engine === "postgres") await accounts.load();
    return ensure(config, accounts, tokens);
  });
}

async function ensure(config: Config, accounts: Accounts, tokens: Tokens): Promise<InstallationOwner> {
  const user =
    accounts.findUserByEmail(config.email) ??
    (await accounts.createUser({ email: config.email, apiKeyHash: null }));
  // The person who accepted that invitation has credentials of this user.
  if (user.invited)
    throw new ConfigError(
      `Expected an address without an accepted invitation for SELVEDGE_EMAIL but received ${user.email}`,
    );
  const account = await ensureAccount(config, accounts, user);
  if (config.apiKey !== undefined && user.apiKeyHash !== tokens.hash(config.apiKey)) {
    await accounts.updateUser(user, { apiKeyHash: tokens.hash(config.apiKey) });
  }
  return { account, user, newToken: await ensureToken(config, user, tokens) };
}

async function ensureAccount(config: Config, accounts: Accounts, user: User): Promise<Account> {
  const first = accounts.list().find((account) => accounts.isMember(user.id, account.id));
  const wanted = config.accountId === undefined ? first : accounts.find(config.accountId);
  const account =
    wanted ??
    (await accounts.create({
      ...(config.accountId === undefined ? {} : { id: config.accountId }),
      name: "Selvedge",
      type: config.defaultPlan === "enterprise" ? "enterprise" : "standard",
      ownerUserId: user.id,
    }));
  return account.hasBilling === config.billing
    ? account
    : accounts.update(account, { hasBilling: config.billing });
}

async function ensureToken(config: Config, user: User, tokens: Tokens): Promise<string | undefined> {
  const owner = { kind: "user" as const, id: user.id };
  const input = { policies: allPolicies(user.id), condition: null, notBefore: null, expiresOn: null };
  if (config.apiToken !== undefined) {
    const known = await tokens.authenticate(config.apiToken, "127.0.0.1");
    if (known === "unknown")
      await tokens.install(owner, { ...input, name: "Owner, from the configuration" }, config.apiToken);
    return undefined;
  }
  const { totalCount } = await tokens.list(user.id, { page: 1, per_page: 1, direction: "asc" });
  if (totalCount > 0) return undefined;
  const { secret } = await tokens.install(owner, { ...input, name: "Owner" });
  return secret;
}

/** Policies that allow every permission on every resource. The user's roles still limit them. */
export function allPolicies(userId: string): Policy[] {
  const resources = {
    zone: "com.cloudflare.api.account.zone.*",
    account: "com.cloudflare.api.account.*",
    user: `com.cloudflare.api.user.${userId}`,
  };
  return (["zone", "account", "user"] as const).map((scope) => ({
    id: newId(),
    effect: "allow",
    resources: { [resources[scope]]: "*" as const },
    permission_groups: permissionGroups
      .filter((group) => group.scope === scope)
      .map(({ id, name }) => ({ id, name })),
  }));
}
