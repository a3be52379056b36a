import type { Config } from "../config/settings.ts";
import { ConfigError } from "../config/config.ts";
import type { Storage } from "../storage/storage.ts";
import { permissionGroups } from "../tokens/permissions.ts";
import type { Policy } from "../tokens/policies.ts";
import { newSecret } from "../tokens/secret.ts";
import type { Tokens } from "../tokens/tokens.ts";
import { isId, newId } from "../util/ids.ts";
import type { Account, Accounts, User } from "./accounts.ts";

export interface Owner {
  account: Account;
  user: User;
  /** The API token, when this start made it; afterwards only its hash is known. */
  newToken: string | undefined;
}

const tokenLengthMin = 8;

/** Makes the first account, its owner and an API token where they are missing, and takes over what the configuration sets. */
export async function ensureOwner(config: Config, accounts: Accounts, tokens: Tokens): Promise<Owner> {
  checkCredentials(config);
  const user =
    accounts.findUserByEmail(config.email) ??
    (await accounts.createUser({ email: config.email, apiKeyHash: null }));
  const account = await ensureAccount(config, accounts, user);
  if (config.apiKey !== undefined && user.apiKeyHash !== tokens.hash(config.apiKey)) {
    await accounts.updateUser(user, { apiKeyHash: tokens.hash(config.apiKey) });
  }
  return { account, user, newToken: await ensureToken(config, user, tokens) };
}

function checkCredentials({ accountId, apiToken, apiKey }: Config): void {
  if (accountId !== undefined && !isId(accountId)) {
    throw new ConfigError(
      "Expected 32 lower-case hex characters for SELVEDGE_ACCOUNT_ID but received something else",
    );
  }
  for (const [name, secret] of [
    ["SELVEDGE_API_TOKEN", apiToken],
    ["SELVEDGE_API_KEY", apiKey],
  ] as const) {
    if (secret !== undefined && secret.length < tokenLengthMin) {
      throw new ConfigError(
        `Expected at least ${tokenLengthMin} characters for ${name}, or nothing to have one made`,
      );
    }
  }
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
      await tokens.create(owner, { ...input, name: "Owner, from the configuration" }, config.apiToken);
    return undefined;
  }
  const { totalCount } = await tokens.list(user.id, { page: 1, per_page: 1, direction: "asc" });
  if (totalCount > 0) return undefined;
  const { secret } = await tokens.create(owner, { ...input, name: "Owner" });
  return secret;
}

/** Everything, on everything that the owner belongs to. */
function allPolicies(userId: string): Policy[] {
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

/** The installation's own secret, under which all other secrets are hashed; made at the first start. */
export async function ensurePepper(storage: Storage): Promise<string> {
  const key = "pepper";
  await storage.write(async (trx) => {
    await trx
      .insertInto("meta")
      .values({ key, value: newSecret() })
      .onConflict((conflict) => conflict.column("key").doNothing())
      .execute();
  });
  const row = await storage.read
    .selectFrom("meta")
    .select("value")
    .where("key", "=", key)
    .executeTakeFirstOrThrow();
  return row.value;
}
