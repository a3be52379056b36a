import type { ReadyPlatform } from "./child.ts";
import type { SeededAccount, Selvedge } from "./selvedge.ts";

/** The tokens and accounts of a seed. Values of tokens are only in the ready file of the platform that made them. */
export type SeededAccess = Pick<ReadyPlatform, "tokens" | "accounts">;

/** The tokens and accounts for a test, with the variables of a platform for each account. */
export function seededAccess(
  { tokens = {}, accounts = {} }: SeededAccess,
  env: Selvedge["env"],
): Pick<Selvedge, "tokens" | "accounts"> {
  const described = Object.entries(accounts).map(([name, each]): [string, SeededAccount] => {
    const own = { CLOUDFLARE_API_TOKEN: each.token, CLOUDFLARE_ACCOUNT_ID: each.account_id };
    return [
      name,
      {
        accountId: each.account_id,
        token: each.token,
        tokens: each.tokens,
        env: { ...env, ...own, ...tokenVariables(each.tokens) },
      },
    ];
  });
  return { tokens, accounts: Object.fromEntries(described) };
}

/** Variables such as SELVEDGE_TOKEN_CI, for programs that are not part of the test. */
export const tokenVariables = (tokens: Readonly<Record<string, string>> = {}): Record<string, string> =>
  Object.fromEntries(
    Object.entries(tokens).map(([name, value]) => [
      `SELVEDGE_TOKEN_${name.toUpperCase().replaceAll("-", "_")}`,
      value,
    ]),
  );
